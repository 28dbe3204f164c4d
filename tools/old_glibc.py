#!/usr/bin/env python3
"""Lets this machine's GCC link for glibc 2.28, whatever glibc the machine has.

    tools/old_glibc.py FOLDER      writes FOLDER/lib*.so and prints the linker flags that use them

Headers and compiler are the machine's. What decides on which systems a library loads are the versions of the symbols
that it asks for, and the linker takes the newest of those that it finds. So it is shown libraries that are not newer:
stubs with the symbols of this machine's libraries up to a version, as manylinux_2_28 allows them. What they lack and
GCC's own libstdc++.a has is linked statically, and a handful of glibc's functions are written out below. A symbol that
nothing has is an error of the linker. For shared libraries: a program has start files of this machine's glibc in it,
which do not run its constructors under one before 2.34.
"""

from __future__ import annotations

import platform
import re
import subprocess
import sys
from pathlib import Path

LIMITS = {"GLIBC": (2, 28), "GLIBCXX": (3, 4, 24), "CXXABI": (1, 3, 11), "GCC": (8,)}
LOADER = {"x86_64": "ld-linux-x86-64.so.2", "aarch64": "ld-linux-aarch64.so.1"}[platform.machine()]
LIBRARIES = ("libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1")
# Parts of libc.so.6 since glibc 2.34; before, their symbols are found if they are loaded.
FORMER = ("libpthread.so.0", "libdl.so.2", "librt.so.1")

# What headers of a newer glibc make of calls that an older one has under other names. Hidden in what links it.
COMPATIBLE = r"""
#define HIDDEN __attribute__((visibility("hidden")))
struct stat;
int __xstat(int version, const char* path, struct stat* to);
int __fxstat(int version, int file, struct stat* to);
#if defined(__x86_64__)
#define STAT_VERSION 1
#else
#define STAT_VERSION 0
#endif
HIDDEN int stat(const char* path, struct stat* to) { return __xstat(STAT_VERSION, path, to); }
HIDDEN int fstat(int file, struct stat* to) { return __fxstat(STAT_VERSION, file, to); }
HIDDEN char __libc_single_threaded = 0; /* nobody says that it is so: counters stay atomic */
"""


def allowed(version: str) -> bool:
    name, _, number = version.partition("_")
    return name in LIMITS and number[:1].isdigit() and tuple(map(int, number.split("."))) <= LIMITS[name]


def order(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.partition("_")[2].split(".")))


def real(name: str) -> Path:
    """The file that GCC links for that name."""
    path = subprocess.run(
        ["gcc", f"-print-file-name={name}"], capture_output=True, text=True, check=True
    ).stdout.strip()
    if not Path(path).is_absolute():
        raise SystemExit(f"tools/old_glibc.py: gcc knows no {name}")
    return Path(path)


def newest_allowed(library: Path) -> dict[str, tuple[str, str, int]]:
    """For each symbol the newest version that is allowed, its kind and its size."""
    table = subprocess.run(["readelf", "-W", "--dyn-syms", library], capture_output=True, text=True, check=True).stdout
    row = re.compile(r"\s*\d+: \w+\s+(\w+)\s+(\w+)\s+(?:GLOBAL|WEAK|UNIQUE)\s+\w+\s+(?!UND)\w+\s+(\w+)@+(\S+)")
    found: dict[str, tuple[str, str, int]] = {}
    for size, kind, name, version in (match.groups() for match in map(row.match, table.splitlines()) if match):
        known = found.get(name)
        if kind != "NOTYPE" and allowed(version) and (not known or order(version) > order(known[0])):
            found[name] = (version, kind, int(size, 0))
    return found


def assembly(symbols: dict[str, tuple[str, str, int]]) -> str:
    lines = []
    for name, (version, kind, size) in symbols.items():
        section = {"TLS": '.section .tbss,"awT",@nobits', "OBJECT": ".bss"}.get(kind, ".text")
        mark = {"TLS": "tls_object", "OBJECT": "object"}.get(kind, "function")
        lines += [section, f".globl stub_{name}", f".type stub_{name}, %{mark}", f".size stub_{name}, {size}"]
        lines += [f"stub_{name}: .zero {size if mark != 'function' else 1}", f".symver stub_{name}, {name}@@@{version}"]
    return "\n".join([*lines, '.section .note.GNU-stack,"",%progbits', ""])


def compile_stub(folder: Path, soname: str, symbols: dict[str, tuple[str, str, int]]) -> None:
    source, script, stub = (folder / f"{soname}{end}" for end in (".s", ".map", ""))
    source.write_text(assembly(symbols))
    versions = sorted({version for version, _, _ in symbols.values()}, key=lambda v: (v.partition("_")[0], order(v)))
    script.write_text("".join(f"{version} {{ }};\n" for version in versions) if versions else "{ };\n")
    command = ["gcc", "-shared", "-nostdlib", f"-Wl,-soname,{soname}", f"-Wl,--version-script={script}"]
    subprocess.run([*command, "-o", stub, source], check=True)


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for soname in (*LIBRARIES, LOADER):
        compile_stub(folder, soname, newest_allowed(real(soname)))
    for soname in FORMER:
        compile_stub(folder, soname, {})
        (folder / f"{soname.split('.')[0]}.so").write_text(f"INPUT ( {folder / soname} )\n")
    compatible = folder / "compatible"
    compatible.with_suffix(".c").write_text(COMPATIBLE)
    subprocess.run(
        ["gcc", "-O2", "-fPIC", "-fno-builtin", "-c", f"{compatible}.c", "-o", f"{compatible}.o"], check=True
    )
    also = {
        "libc.so.6": f"{folder / LOADER} {real('libc_nonshared.a')} {compatible}.o",
        "libstdc++.so.6": str(real("libstdc++.a")),
        "libgcc_s.so.1": str(real("libgcc.a")),
    }
    for soname in LIBRARIES:
        name = f"{soname.partition('.')[0]}.so"
        (folder / name).write_text(f"GROUP ( {folder / soname} {also.get(soname, '')} )\n")
    former = " ".join(f"-l{name[3:].partition('.')[0]}" for name in FORMER)
    print(f"-L{folder} -Wl,--exclude-libs,ALL -Wl,--push-state,--no-as-needed {former} -Wl,--pop-state")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    main(Path(sys.argv[1]).resolve())
