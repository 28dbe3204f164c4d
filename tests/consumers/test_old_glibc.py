"""tools/old_glibc.py: what is linked with its flags asks for no symbol that is newer than glibc 2.28 and GCC 8."""

from __future__ import annotations

import ctypes
import platform
import re
import shlex
import shutil
import sys

import pytest

from support.source_tree import ROOT, needs_source_tree

pytestmark = needs_source_tree

SOURCE = """
#include <sys/stat.h>
#include <charconv>
#include <cmath>
#include <cstring>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

extern "C" __attribute__((visibility("default"))) double in_a_thread(const char* text, const char* path) {
  auto value = std::make_shared<double>(0);
  std::exception_ptr failure;
  std::thread([value, text, &failure] {
    try {
      if (std::from_chars(text, text + std::strlen(text), *value).ec != std::errc()) throw std::invalid_argument(text);
      *value = std::exp(std::log(*value));
    } catch (...) {
      failure = std::current_exception();
    }
  }).join();
  try {
    if (failure) std::rethrow_exception(failure);
  } catch (const std::invalid_argument& error) {
    return -double(std::string(error.what()).size());
  }
  struct stat found;
  return stat(path, &found) == 0 && S_ISDIR(found.st_mode) ? *value : 0;
}
"""


@pytest.fixture(scope="module")
def flags(output_of, tmp_path_factory):
    if platform.machine() not in ("x86_64", "aarch64") or not shutil.which("gcc") or not shutil.which("readelf"):
        pytest.skip("needs GCC and binutils, on x86-64 or AArch64")
    return shlex.split(output_of(sys.executable, ROOT / "tools" / "old_glibc.py", tmp_path_factory.mktemp("stubs")))


def newest(output_of, library) -> dict[str, tuple[int, ...]]:
    table = output_of("readelf", "-W", "--version-info", library)
    asked = re.findall(r"Name: (GLIBC|GLIBCXX|CXXABI|GCC)_([0-9.]+)", table)
    versions = {
        name: [tuple(map(int, number.split("."))) for other, number in asked if other == name] for name, _ in asked
    }
    return {name: max(numbers) for name, numbers in versions.items()}


def test_what_is_linked_loads_on_older_systems(output_of, flags, tmp_path):
    (tmp_path / "source.cpp").write_text(SOURCE)
    build = ("g++", "-std=c++20", "-O2", "-fPIC", "-fvisibility=hidden", "-shared", tmp_path / "source.cpp", "-o")
    output_of(*build, tmp_path / "here.so")
    output_of(*build, tmp_path / "older.so", "-Wl,--no-undefined", *flags)
    limits = {"GLIBC": (2, 28), "GLIBCXX": (3, 4, 24), "CXXABI": (1, 3, 11), "GCC": (8,)}
    found = newest(output_of, tmp_path / "older.so")
    assert found and all(number <= limits[name] for name, number in found.items()), found
    if newest(output_of, tmp_path / "here.so")["GLIBC"] <= (2, 28):
        pytest.skip("this system is an older one itself")

    library = ctypes.CDLL(str(tmp_path / "older.so"))
    library.in_a_thread.restype = ctypes.c_double
    assert abs(library.in_a_thread(b"2.5", b"/") - 2.5) < 1e-12
    assert library.in_a_thread(b"no number", b"/") == -9, "an exception goes from thread to thread"
    assert library.in_a_thread(b"2.5", b"/no such folder") == 0


def test_what_cannot_be_had_is_an_error_at_link_time(output_of, flags, tmp_path):
    (tmp_path / "source.c").write_text(
        "void arc4random_buf(void*, unsigned long); void f(void* p) { arc4random_buf(p, 1); }\n"
    )
    build = ("gcc", "-shared", "-fPIC", tmp_path / "source.c", "-o", tmp_path / "lib.so", "-Wl,--no-undefined")
    with pytest.raises(AssertionError, match="undefined reference to `arc4random_buf'"):
        output_of(*build, *flags)
