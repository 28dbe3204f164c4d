"""Two things done to a built site: check the links inside it, and make one file of a page.

python docs/links.py build/docs/html
python docs/links.py --one-file PAGE.html TO.html
"""

from __future__ import annotations

import base64
import mimetypes
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag


class Page(HTMLParser):
    """What a page refers to, and the places in it that others can refer to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.places: set[str] = {""}
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" or (name == "name" and tag == "a"):
                self.places.add(value or "")
            elif name == "href" or (name == "src" and tag in ("img", "script")):
                self.targets.append(value or "")


def broken(folder: Path) -> list[str]:
    """Links of all pages that lead to no file, or to no place in it."""
    pages = {path.resolve(): Page(path) for path in folder.rglob("*.html")}
    found = []
    for path, page in pages.items():
        for target in page.targets:
            if re.match(r"[a-z]+:|//", target):
                continue
            file, place = urldefrag(target)
            there = (path.parent / unquote(file.split("?")[0])).resolve() if file else path
            if there.is_dir():
                there /= "index.html"
            if not there.exists() or (there in pages and unquote(place) not in pages[there].places):
                found.append(f"{path.relative_to(folder.resolve())}: {target}")
    return found


def as_data(path: Path) -> str:
    kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    return f"data:{kind};base64,{base64.b64encode(path.read_bytes()).decode()}"


def beside(path: Path, target: str) -> Path:
    """The file that a page refers to. Of a root in a folder, Sphinx counts from the folder above in one-page builds."""
    places = [folder / unquote(target.split("?")[0]) for folder in (path.parent, path.parent.parent)]
    return next((place for place in places if place.exists()), places[0]).resolve()


def one_file(path: Path) -> str:
    """The page with its style sheets and images in it, and without scripts."""
    text = re.sub(r"<script\b.*?</script>", "", path.read_text(), flags=re.DOTALL)

    def style(match: re.Match[str]) -> str:
        file = beside(path, match[1])
        return f"<style>{file.read_text()}</style>" if file.exists() else ""

    text = re.sub(r'<link rel="stylesheet"[^>]*href="([^"]+)"[^>]*>', style, text)
    text = re.sub(r'<link rel="(?:index|search|icon|shortcut icon|prefetch|preload)"[^>]*>', "", text)

    def image(match: re.Match[str]) -> str:
        return f'{match[1]}"{as_data(beside(path, match[2]))}"'

    return re.sub(r'(<img\b[^>]*?\bsrc=)"(?!data:)([^"]+)"', image, text)


def main() -> None:
    if sys.argv[1] == "--one-file":
        Path(sys.argv[3]).write_text(one_file(Path(sys.argv[2])))
        return
    found = broken(Path(sys.argv[1]))
    if found:
        sys.exit("\n".join(["links that lead nowhere:", *found]))


if __name__ == "__main__":
    main()
