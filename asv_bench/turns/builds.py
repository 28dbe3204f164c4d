"""Wheels of commits, and folders to import them from."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

from .rounds import Build

ROOT = Path(__file__).resolve().parent.parent.parent
CACHE = ROOT / "build" / "asv"  # wheels by commit
Progress = Callable[[str], None]


class NotABuild(ValueError):
    """The message says what was given and what is wanted."""


def git(*arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotABuild(f"git {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout.strip()


def commit_of(name: str) -> str:
    """The full hash of a commit by any of its names."""
    try:
        return git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
    except NotABuild:
        raise NotABuild(f"{name}: neither a commit of this repository nor a wheel or folder that exists") from None


def build_environment(cuda: str) -> dict[str, str]:
    """ccache where it is installed; `cuda` as FASTLINALG_CUDA."""
    environment = dict(os.environ)
    environment["FASTLINALG_CUDA"] = cuda
    if shutil.which("ccache"):
        for language in ("C", "CXX", "CUDA"):
            environment.setdefault(f"CMAKE_{language}_COMPILER_LAUNCHER", "ccache")
    return environment


def default_cuda() -> str:
    """ "ON" on a machine with an NVIDIA driver, unless FASTLINALG_CUDA says otherwise."""
    return os.environ.get("FASTLINALG_CUDA") or ("ON" if shutil.which("nvidia-smi") else "OFF")


def wheel(commit: str, cuda: str, progress: Progress) -> Path:
    """The wheel of a commit, built from its own sources at the first call and kept."""
    folder = CACHE / "wheels" / f"{commit}-cuda-{cuda.lower()}"
    if not (found := sorted(folder.glob("*.whl"))):
        progress(f"building {commit[:9]}, FASTLINALG_CUDA={cuda}")
        with tempfile.TemporaryDirectory() as scratch:
            source, out = Path(scratch) / "source", Path(scratch) / "out"
            archive = Path(scratch) / "source.tar"
            git("archive", "--format=tar", f"--output={archive}", commit)
            with tarfile.open(archive) as file:
                file.extractall(source)
            built = _pip_wheel(source, out, cuda, progress)
            folder.mkdir(parents=True, exist_ok=True)
            found = [Path(shutil.move(built, folder / built.name))]
    return found[0]


def _pip_wheel(source: Path, out: Path, cuda: str, progress: Progress) -> Path:
    begin = time.monotonic()
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", str(out), str(source)]
    if all(importlib.util.find_spec(name) for name in ("nanobind", "scikit_build_core")) and cuda == "OFF":
        command.insert(4, "--no-build-isolation")  # what a build needs is here: no environment has to be made
    done = subprocess.run(command, env=build_environment(cuda), capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotABuild(f"{source} does not build:\n{(done.stdout + done.stderr)[-3000:]}")
    progress(f"built in {time.monotonic() - begin:.0f} s")
    return next(out.glob("*.whl"))


def _unpack(file: Path, site: Path) -> Path:
    with zipfile.ZipFile(file) as archive:
        archive.extractall(site)
    return site


def resolve(given: str, site: Path, cuda: str, progress: Progress) -> Build:
    """A commit, a wheel, a folder with `fastlinalg/` in it, or a checkout to build as it is, such as "."."

    `site` is the folder to unpack it to. The names of such folders have one length: what lies where depends on it, too.
    """
    path = Path(given)
    if path.suffix == ".whl" and path.is_file():
        return Build(given, _unpack(path, site))
    if (path / "fastlinalg" / "__init__.py").is_file():
        return Build(given, path.resolve())
    if (path / "pyproject.toml").is_file():
        progress(f"building {path.resolve()}, FASTLINALG_CUDA={cuda}")
        with tempfile.TemporaryDirectory() as scratch:
            return Build(given, _unpack(_pip_wheel(path.resolve(), Path(scratch), cuda, progress), site))
    commit = commit_of(given)
    return Build(f"{given} ({commit[:9]})", _unpack(wheel(commit, cuda, progress), site))
