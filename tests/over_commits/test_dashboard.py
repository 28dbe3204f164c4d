"""The dashboard of the committed results in a real browser: no error, nothing from the network, points, regressions.

Needs Playwright and a Chromium (its own, or the system's), asv and npm; FASTLINALG_REQUIRE=browser demands them.
"""

from __future__ import annotations

import functools
import http.server
import json
import shutil
import sys
import threading

import pytest

from support.programs import completed
from support.requirements import missing
from support.source_tree import ROOT, needs_source_tree

pytestmark = needs_source_tree
RESULTS = ROOT / "asv_bench" / "results"
OPTIONS = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync")


class Server(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """Of a server of the pages, as tools/dashboard makes them."""
    for name in ("asv", "matplotlib", "playwright"):
        try:
            __import__(name)
        except ImportError:
            missing("browser", f"{name} is not installed")
    if not shutil.which("npm") or not (ROOT / ".git").exists() or not RESULTS.is_dir():
        missing("browser", "needs npm, and the repository with its results")
    output = tmp_path_factory.mktemp("dashboard") / "html"
    completed(sys.executable, ROOT / "tools" / "dashboard", "--output", output, seconds=600)
    handler = functools.partial(Server, directory=str(output))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture(scope="module")
def browser(address):
    from playwright.sync_api import Error, sync_playwright

    with sync_playwright() as playwright:
        try:
            found = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=OPTIONS)
        except Error as error:
            missing("browser", f"no Chromium starts: {str(error).splitlines()[0]}")
        yield found
        found.close()


@pytest.fixture
def page(browser, address):
    """A page that fails the test for any error, and for anything that is loaded from elsewhere."""
    page, wrong = browser.new_page(), []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda said: wrong.append(f"{said.text} {said.location}") if said.type == "error" else None)
    page.on("request", lambda asked: None if asked.url.startswith(address) else wrong.append(asked.url))
    yield page
    page.wait_for_load_state("networkidle")
    page.close()
    assert not wrong


def machines() -> set[str]:
    return {json.loads(file.read_text())["machine"] for file in RESULTS.glob("*/machine.json")}


def test_the_front_page_has_ratios_and_leads_to_benchmarks(page, address):
    page.goto(address + "dashboard.html")
    assert {heading.inner_text() for heading in page.query_selector_all("h2")} == machines()
    assert page.query_selector_all("svg polyline")
    link = page.query_selector('a[href^="index.html#cpu."]')
    link.click()
    page.wait_for_selector("canvas.flot-overlay")


def test_the_grid_and_the_list_have_every_kind(page, address):
    page.goto(address + "index.html")
    page.wait_for_selector("canvas")
    titles = page.inner_text("#summarygrid-display")
    assert "Cubes.track_seconds" in titles and "Call.track_seconds" in titles
    page.goto(address + "index.html#/summarylist")
    page.wait_for_selector("#summarylist-body tbody tr, #summarylist-body tr")
    page.get_by_role("link", name="gpu.Products.track_seconds").first.wait_for()
    page.locator("#summarylist-navigation").get_by_text("zen4").click()
    page.get_by_role("link", name="cpu.Cubes.track_seconds").first.wait_for()


def test_the_page_of_a_benchmark_has_points_of_all_machines(page, address):
    page.goto(address + "index.html#cpu.Cubes.track_seconds")
    page.wait_for_selector(".legend td")
    panel = page.inner_text("#graphdisplay-navigation")
    assert all(machine in panel for machine in machines())
    assert page.evaluate("$('#main-graph').data('plot').getData().some(s => s.data.filter(p => p).length >= 10)")


def test_commits_and_regressions_can_be_read(page, address):
    page.goto(address + "index.html#/regressions")
    page.wait_for_selector("#regressions-body *", state="attached")
    page.goto(address + "commits.html")
    assert len(page.query_selector_all("h2")) >= 10
