"""The table of `fastlinalg tune`: what it may change, when it is read, and what is ignored."""

from __future__ import annotations

import math
import os
import re
import sys
import textwrap

import numpy as np
import pytest

import fastlinalg as fl
from fastlinalg import _core
from fastlinalg.bench import tuning
from support.accuracy import assert_product, assert_same_bits
from support.programs import completed
from support.tuning_tables import favour, interchangeable, table, use, write

F32 = np.float32


@pytest.fixture(autouse=True)
def untuned():
    _core.clear_tuning()
    yield
    _core.clear_tuning()


def chosen(a, b, **keywords):
    with fl.Matmul(a, b, device="cpu", **keywords) as plan:
        plan.plan()
        return plan.kernel


# ---------------------------------------------------------------- what a table does
def test_a_table_moves_calls_between_its_rows(rng):
    for m, n, k in ((5, 7, 9), (40, 50, 60), (200, 190, 210), (700, 600, 500)):
        a, b = rng.standard_normal((m, k), dtype=F32), rng.standard_normal((k, n), dtype=F32)
        want = fl.matmul(a, b, device="cpu")
        for fast in interchangeable():
            use(favour(fast))
            assert chosen(a, b) == fast, "a choice made without the table is remembered"
            assert_same_bits(fl.matmul(a, b, device="cpu"), want)
            assert_same_bits(fl.matmul(a, b, device="cpu", precision="strict"), want)


def test_rows_without_a_factor_are_left_alone(rng):
    a, b = rng.standard_normal((64, 64), dtype=F32), rng.standard_normal((64, 64), dtype=F32)
    first = chosen(a, b)
    use([("sgemm", "reference", [(1.0, 1e-6)])])
    assert chosen(a, b) == first
    assert chosen(a, b[:, :1]) != "reference"


@pytest.mark.parametrize("factor", [1e-3, 1e3])
def test_the_fastest_is_said_of_what_it_was_compared_with(factor):
    """Corrected rows with each other, or the choice of the rules with what the rules say."""
    shapes, (*tuned, last) = ((64, 64), (64, 64)), interchangeable()
    for names in (tuned, ["reference"]):
        use([("sgemm", name, [(1.0, factor)]) for name in names])
        answer = fl.explain(*shapes, device="cpu")
        assert all(answer.estimated_us <= us for us in answer.others.values() if not isinstance(us, str)), names
        uncorrected = [name for name, us in answer.others.items() if us == "no correction in the tuning table"]
        assert (last in uncorrected) == (names is tuned)


def test_the_bits_do_not_depend_on_threads_or_tables(rng):
    a, b = rng.standard_normal((130, 300), dtype=F32), rng.standard_normal((300, 170), dtype=F32)
    results = set()
    for fast in interchangeable():
        use(favour(fast))
        for threads in (1, 2, 3):
            with fl.num_threads(threads):
                results.add(fl.matmul(a, b, device="cpu").tobytes())
    assert len(results) == 1


def test_short_calls_follow_a_new_table(rng):
    """Calls of a microsecond skip the decision: not across tables."""
    a, b = rng.standard_normal((6, 6), dtype=F32), rng.standard_normal((6, 6), dtype=F32)
    want = fl.matmul(a, b)
    for name in interchangeable():
        use(favour(name))
        for _ in range(3):
            assert_same_bits(fl.matmul(a, b), want)
        assert chosen(a, b) == name


@pytest.mark.gpu
def test_a_table_of_a_gpu_is_used_for_gpus_of_its_name(rng):
    a, b = rng.standard_normal((300, 200), dtype=F32), rng.standard_normal((200, 100), dtype=F32)

    def on_device(**keywords):
        with fl.Matmul(a, b, device="cuda", **keywords) as plan:
            plan.plan()
            return plan.kernel

    rows = [row.name for row in fl.kernels("sgemm") if row.device == "cuda" and row.available]
    before = on_device(), on_device(precision="strict")
    knots = [("sgemm", name, [(1.0, 1e-4 if name == "double_buffered" else 1.0)]) for name in rows]
    use(knots, "cuda", fl.devices()[0]["name"])
    assert on_device() == on_device(precision="strict") == "double_buffered"
    assert_product(fl.sgemm(a, b, device="cuda"), a, b)
    loose = [row.name for row in fl.kernels("sgemm") if row.device == "cuda" and row.available and not row.strict]
    if loose:  # however fast it is said to be
        use([("sgemm", r, [(1.0, 1e-4 if r in loose else 1.0)]) for r in rows], "cuda", fl.devices()[0]["name"])
        assert on_device() in loose and on_device(precision="strict") not in loose
    use(knots, "cuda", "another GPU")
    assert (on_device(), on_device(precision="strict")) == before


def test_factors_between_the_knots():
    """Python's copy of the rule and the library's are one."""
    packed = interchangeable()[0]
    knots = [(1.0, 0.5), (10.0, 2.0), (1000.0, 1.0)]
    assert tuning.corrected(knots, 0.1) == pytest.approx(0.05)
    assert tuning.corrected(knots, 1e6) == pytest.approx(1e6)
    assert tuning.corrected(knots, math.sqrt(10.0)) == pytest.approx(math.sqrt(10.0))
    shapes = [((n, n), (n, n)) for n in (2, 9, 60, 300, 700, 3000)]  # of estimates beyond the knots and between them

    def estimates():
        return [fl.explain(*of, kernel=packed, device="cpu").estimated_us for of in shapes]

    by_rules = estimates()
    assert by_rules[0] < 1.0 and by_rules[-1] > 1000.0
    use([("sgemm", packed, knots)])
    assert estimates() == pytest.approx([tuning.corrected(knots, us) for us in by_rules])


# ---------------------------------------------------------------- the file
def test_a_file_is_used(tmp_path, rng):
    a, b = rng.standard_normal((40, 50), dtype=F32), rng.standard_normal((50, 60), dtype=F32)
    packed = interchangeable()[0]
    assert _core.load_tuning(write(tmp_path / "t.txt", table())) == ""
    assert chosen(a, b) == packed
    assert "is not used: there is no such file" in _core.load_tuning(str(tmp_path / "missing.txt"))
    assert chosen(a, b) == packed
    _core.clear_tuning()
    untuned = chosen(a, b)
    assert _core.load_tuning(write(tmp_path / "t.txt", table(name="another CPU"))) == ""
    assert chosen(a, b) == untuned


HEAD = f"fastlinalg-tuning 2 {fl.__version__}\n"
BROKEN = {
    "empty": "",
    "no table": "tuned!",
    "cut": HEAD,
    "bytes": "\x00\x01",
    "more behind it": HEAD + "end\nx\n",
    "another format": f"fastlinalg-tuning 3 {fl.__version__}\nend\n",
    "another version": "fastlinalg-tuning 2 0.0.9\nend\n",
    "no name": HEAD + "device\nend\n",
    "a row of no device": HEAD + "row sgemm reference 1:1\nend\n",
    "another line": HEAD + "device cpu x\nfactor 1\nend\n",
    **{
        name: HEAD + f"device {kind} {_core.cpu_name()}\nrow {row}\nend\n"
        for name, kind, row in (
            ("a kind", "tpu", "sgemm reference 1:1"),
            ("a row", "cpu", "sgemm nosuchrow 1:1"),
            ("an operation", "cpu", "dgemm reference 1:1"),
            ("a row of another device", "cpu", "sgemm naive 1:1"),
            ("a negative factor", "cpu", "sgemm reference 1:-1"),
            ("no factor", "cpu", "sgemm reference 1:0"),
            ("no number as a factor", "cpu", "sgemm reference 1:nan"),
            ("descending", "cpu", "sgemm reference 5:1 1:1"),
            ("twice the same", "cpu", "sgemm reference 5:1 5:2"),
            ("a huge number", "cpu", "sgemm reference 1e999:1"),
            ("no pair", "cpu", "sgemm reference 1:1:1"),
            ("half a pair", "cpu", "sgemm reference 1:"),
            ("another pair", "cpu", "sgemm reference 1,1"),
            ("no number", "cpu", "sgemm reference x:1"),
            ("no knot", "cpu", "sgemm reference"),
        )
    },
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_files_change_nothing(name, tmp_path, rng):
    a, b = rng.standard_normal((40, 50), dtype=F32), rng.standard_normal((50, 60), dtype=F32)
    before = chosen(a, b)
    path = write(tmp_path / "t.txt", BROKEN[name])
    complaint = _core.load_tuning(path)
    assert complaint.startswith(f"tuning table {path} is not used: ") and "\n" not in complaint
    assert chosen(a, b) == before


def test_truncated_and_altered_files(tmp_path, rng):
    """Each is used as it is, or refused in one line."""
    text, path = table().encode(), tmp_path / "t.txt"
    cut = [text[:length] for length in range(0, len(text), 7)]
    altered = [bytearray(text) for _ in range(200)]
    for content in altered:
        for at in rng.integers(0, len(text), rng.integers(1, 4)):
            content[at] = rng.integers(0, 256) if rng.integers(2) else rng.choice(list(b"\n #:-0e"))
    for content in (*cut, *altered):
        path.write_bytes(content)
        complaint = _core.load_tuning(str(path))
        assert not complaint or (complaint.startswith("tuning table ") and complaint.isprintable()), content
        assert complaint or content not in cut
        assert (fl.matmul(np.ones((3, 4), F32), np.ones((4, 5), F32), device="cpu") == 4).all()


@pytest.mark.parametrize("name", [b"\xff", b"two\nlines", b"x" * 100_000], ids=["bytes", "newline", "long"])
def test_what_a_file_says_fits_in_one_line(name, tmp_path):
    (tmp_path / "t.txt").write_bytes(table(kind="KIND").encode().replace(b"KIND", name))
    complaint = _core.load_tuning(str(tmp_path / "t.txt"))
    assert "there is no kind of device" in complaint and complaint.isprintable() and len(complaint) < 2000


def test_unreadable_files(tmp_path):
    (tmp_path / "folder").mkdir()
    assert "cannot be read" in _core.load_tuning(str(tmp_path / "folder"))
    assert "larger than 1 MiB" in _core.load_tuning(write(tmp_path / "t.txt", " " * (2 << 20)))
    assert "there is no such file" in _core.load_tuning(str(tmp_path / "t.txt" / "below a file"))


# ---------------------------------------------------------------- reading it at the first call
def first_call(env, code="", tmp_path=None):
    script = textwrap.dedent(f"""
        import logging
        logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(message)s")
        import numpy as np, fastlinalg as fl
        a = np.ones((40, 50), np.float32); b = np.ones((50, 60), np.float32)
        {code}
        for _ in range(2):
            assert (fl.matmul(a, b, device="cpu") == 50).all()
        with fl.Matmul(a, b, device="cpu") as plan:
            plan.plan()
            print(plan.kernel)
    """)
    done = completed(sys.executable, "-c", script, env=env, seconds=60)
    return done.stdout.strip(), done.stderr.strip().splitlines()


def test_the_users_table_is_read_once_at_the_first_call(environment):
    env, path = environment
    packed = interchangeable()[0]
    untuned, lines = first_call(env)
    assert lines == []
    write(path, table())
    assert first_call(env) == (packed, [])
    assert first_call(env | {"FASTLINALG_TUNE": "off"}) == (untuned, [])
    elsewhere = path.rename(path.with_name("elsewhere.txt"))
    assert first_call(env) == (untuned, [])
    assert first_call(env | {"FASTLINALG_TUNE": str(elsewhere)}) == (packed, [])
    # Not at import, and not again: the file appears or goes after the first call.
    code = f"fl.matmul(a, b, device='cpu'); import shutil; shutil.copy({str(elsewhere)!r}, {str(path)!r})"
    assert first_call(env, code) == (untuned, [])
    code = f"import os; os.remove({str(path)!r})"
    assert first_call(env, code) == (untuned, [])


@pytest.mark.parametrize("named", ["/none/x.json", "out", "of"])
def test_a_named_table_that_is_not_there_is_one_line_in_the_log(named, environment):
    env, _ = environment
    _, lines = first_call(env | {"FASTLINALG_TUNE": named})
    wanted = "is not used: there is no such file; FASTLINALG_TUNE is the path of one, or off"
    assert lines == [f"WARNING tuning table {named} {wanted}"]


def test_which_table_is_in_use_is_said(environment):
    """By info, show_versions and the explanation of a call."""
    env, path = environment
    code = "print(fl.info()['tuning']); fl.show_versions(); print(fl.explain(a, b, device='cpu'))"
    text, lines = first_call(env, code)
    assert f"'table': None, 'message': 'there is no {path}'" in text and f"none: there is no {path}" in text
    assert "  tuned " not in text and lines == []
    text, _ = first_call(env | {"FASTLINALG_TUNE": "Off"}, code)
    assert "'message': 'FASTLINALG_TUNE=Off'" in text and "  tuned " not in text
    text, lines = first_call(env | {"FASTLINALG_TUNE": "/none.json"}, code)
    assert "none: tuning table /none.json is not used: there is no such file" in text and len(lines) == 1
    write(path, table(name="another CPU"))
    assert f"{path} corrects nothing on this machine" in first_call(env, code)[0]
    write(path, table())
    text, _ = first_call(env, code)
    assert (
        f"'table': '{path}', 'message': ''" in text and f"\n  tuned    the estimates are corrected by {path}\n" in text
    )
    assert re.search(rf"tuning table +{path}\n", text)


def test_a_broken_table_is_one_line_in_the_log(environment):
    env, path = environment
    write(path, "fastlinalg-tuning 2 0.0.1\nend\n")
    _, lines = first_call(env)
    assert len(lines) == 1 and lines[0].startswith("WARNING tuning table ") and "made by version 0.0.1" in lines[0]


def test_no_byte_of_a_table_or_its_name_fails_a_product(environment):
    env, path = environment
    path.write_bytes(table(kind="KIND").encode().replace(b"KIND", b"\xff"))
    _, lines = first_call(env)
    assert len(lines) == 1 and "there is no kind of device '?'" in lines[0]
    odd = os.fsencode(path.parent) + b"/\xff.json"
    path.rename(os.fsdecode(odd))
    _, lines = first_call(env | {"FASTLINALG_TUNE": os.fsdecode(odd)})
    assert len(lines) == 1 and "\\ufffd.json is not used" in lines[0].encode("ascii", "backslashreplace").decode()


def test_where_the_file_is(monkeypatch, tmp_path):
    for off in ("off", "Off", "OFF"):
        monkeypatch.setenv("FASTLINALG_TUNE", off)
        assert _core.tuning_path() == ""
    monkeypatch.delenv("FASTLINALG_TUNE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert _core.tuning_path() == str(tmp_path / "fastlinalg" / "tuning.txt")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", "/nowhere")
    assert _core.tuning_path() == "/nowhere/.cache/fastlinalg/tuning.txt"
    for nowhere in ("relative", ""):
        monkeypatch.setenv("HOME", nowhere)
        assert _core.tuning_path() == "", "nothing is read from the working directory"
    monkeypatch.delenv("HOME")
    assert _core.tuning_path() == ""
