"""`fl.explain` says what the call then does; `fl.kernels()` and `fl.show_versions()` print what a reader asks for."""

from __future__ import annotations

import logging
import platform

import numpy as np
import pytest

import fastlinalg as fl


def ones(*shape, dtype=np.float32):
    return np.ones(shape, dtype)


def chosen_by_call(call, caplog) -> str:
    """The kernel that the log names."""
    fl.transpose(ones(3, 5))  # another shape than that of the call, which the log names when it is new
    caplog.clear()
    with caplog.at_level(logging.DEBUG, logger="fastlinalg"):
        call()
    lines = [record.getMessage() for record in caplog.records]
    return next(line.split(" -> cpu ")[1].split(" ")[0] for line in lines if " -> cpu " in line)


CALLS = {
    "product": ((ones(301, 203), ones(203, 405)), {}, fl.matmul),
    "small product": ((ones(5, 6), ones(6, 7)), {}, fl.matmul),
    "F order": ((np.asfortranarray(ones(211, 307)), ones(307, 113)), {}, fl.matmul),
    "matrix and vector": ((ones(311, 213), ones(213)), {}, fl.matmul),
    "vector and matrix": ((ones(317), ones(317, 219)), {}, fl.matmul),
    "vectors": ((ones(331), ones(331)), {}, fl.matmul),
    "transposed": ((ones(223, 337), ones(119, 223)), {"trans_a": True, "trans_b": True}, fl.sgemm),
    "batch": ((ones(7, 61, 67), ones(67, 71)), {}, fl.matmul),
    "transpose": ((ones(341, 229),), {}, fl.transpose),
}


@pytest.mark.parametrize("name", CALLS)
def test_it_is_the_kernel_that_the_call_takes(name, caplog):
    operands, options, function = CALLS[name]
    answer = fl.explain(*operands, device="cpu", **options)
    assert answer.device == "cpu" and answer.estimated_us > 0
    assert answer.kernel == chosen_by_call(lambda: function(*operands, device="cpu", **options), caplog)
    assert answer.kernel in str(answer) and answer.op in str(answer)
    assert answer.kernel not in answer.others
    rows = {row.name for row in fl.kernels(answer.op) if row.device == "cpu"}
    assert set(answer.others) == rows - {answer.kernel}


def test_shapes_stand_for_arrays_in_c_order():
    for shapes in (((301, 203), (203, 405)), ((7, 61, 67), (67, 71)), ((311, 213), (213,)), ((341, 229),)):
        of_shapes, of_arrays = fl.explain(*shapes), fl.explain(*(ones(*shape) for shape in shapes))
        assert str(of_shapes) == str(of_arrays)
    assert fl.explain((100_000, 100_000), (100_000, 100_000), device="cpu").estimated_us > 1e6


def test_it_says_what_decided():
    a = ones(300, 300)
    assert "device='cpu' says so" in str(fl.explain(a, a, device="cpu"))
    row = next(row for row in fl.kernels("sgemm") if row.device == "cpu" and row.name != fl.explain(a, a).kernel)
    asked = fl.explain(a, a, kernel=row.name)
    assert asked.kernel == row.name and "as asked for" in str(asked)
    if not fl.cuda.is_available():
        assert "there is no CUDA device" in str(fl.explain(a, a))
    assert "nothing to compute" in str(fl.explain((0, 3), (3, 4)))
    assert fl.explain((0, 3), (3, 4)).kernel is None
    assert str(fl.explain(a.astype(float), a, dtype=np.float32)) == str(fl.explain(a, a))


@pytest.mark.parametrize("name", CALLS)
def test_it_counts_the_kernels_that_could_have_been_chosen(name):
    operands, options, _ = CALLS[name]
    answer = fl.explain(*operands, device="cpu", **options)
    possible = {row: us for row, us in answer.others.items() if isinstance(us, float)}
    assert possible, "the reference can compute everything"
    assert f"expected to be the fastest of {len(possible) + 1} kernels that can compute it here" in str(answer)
    next_rows = next(line.split() for line in str(answer).splitlines() if line.split()[0] == "next")
    assert next_rows[1] == min(possible, key=lambda row: (possible[row], row))


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the baseline of other processors has fused multiply-adds")
def test_it_says_that_no_other_kernel_can(python):
    program = "import fastlinalg as fl; print(fl.explain((9, 9), (9, 9), precision='reproducible'))"
    said = python(program, FASTLINALG_CPU="baseline", FASTLINALG_DEVICE="cpu")
    assert "the only kernel that can compute it here" in said and "\n  next " not in said, said


@pytest.mark.gpu
def test_host_arrays_are_compared_on_both():
    answer = fl.explain((3000, 3000), (3000, 3000))
    assert "with the copies to the GPU and back" in str(answer).splitlines()[0]
    on_gpu = fl.explain((3000, 3000), (3000, 3000), device="cuda")
    assert on_gpu.device == "cuda:0" and on_gpu.kernel in str(on_gpu)


@pytest.mark.parametrize(
    ("operands", "error", "words"),
    [
        (((2, 3), (4, 5)), ValueError, "(2, 3)"),
        (((2, -3), (3, 5)), ValueError, "no shape"),
        (((2.0, 3), (3, 5)), TypeError, "each size of a must be an int, got 2.0"),
        (([2, 3], (3, 5)), TypeError, "a must be an array or a tuple that is its shape, as (1000, 500), got [2, 3]"),
        (((2, 3), "3x5"), TypeError, "b must be an array or a tuple that is its shape, as (1000, 500), got '3x5'"),
        (((2,),), ValueError, "at least 2 dimensions"),
        ((np.ones((2, 2), complex), (2, 2)), TypeError, "complex"),
        ((np.ones((2, 2)), (2, 2)), TypeError, "a must have dtype float32, got float64"),
        (((2, 2), np.ones((2, 2), int)), TypeError, "or dtype=np.float32 to have it converted"),
        ((np.ones((2, 2)),), TypeError, "float64"),
        (((1,) * 65, (2, 2)), ValueError, "no shape"),
    ],
    ids=str,
)
def test_bad_input(operands, error, words):
    with pytest.raises(error) as caught:
        fl.explain(*operands)
    assert words in str(caught.value)


def test_it_refuses_what_the_call_refuses():
    a, x = ones(4, 4), ones(4)
    for call, error, words in (
        (lambda: fl.explain(a, a, kernel="nothing"), ValueError, "unknown sgemm kernel 'nothing'"),
        (lambda: fl.explain(a, x, trans_b=True), ValueError, r"trans_b needs a matrix, but b has shape \(4,\)"),
        (lambda: fl.explain(x, a, trans_a=True), ValueError, r"trans_a needs a matrix, but a has shape \(4,\)"),
        (lambda: fl.explain(a, trans_a=True), ValueError, "trans_a and trans_b are of products"),
        (lambda: fl.explain(a, a, dtype=np.float64), TypeError, r"dtype must be None or np\.float32"),
        (lambda: fl.explain(np.ma.masked_array(a), a), TypeError, "masked"),
    ):
        with pytest.raises(error, match=words):
            call()


@pytest.mark.parametrize("op", ["sgemm", "sgemv", "transpose"])
def test_kernels_print_as_a_table(op):
    table = fl.kernels(op)
    lines = str(table).splitlines()
    here_first = [row for row in table if row.available] + [row for row in table if not row.available]
    for row, line in zip(here_first, lines[1:], strict=True):
        assert line.startswith(row.name) and row.device in line and row.runs in line
    assert isinstance(table, list) and table[0].name == str(table[0])
    here = sum(row.available for row in table)
    assert repr(table) == f"<KernelTable: {len(table)} kernels, {here} of them run here; print() shows them>"


def test_kernels_are_found_by_name_and_device():
    table = fl.kernels("sgemm")
    assert table["portable"].name == "portable" and table[-1] == list(table)[-1]
    assert type(table[:2]) is fl.KernelTable and table[:2] == list(table)[:2]
    for device in ("cpu", "cuda"):
        assert fl.kernels("sgemm", device=device) == [row for row in table if row.device == device]
    with pytest.raises(KeyError, match="no kernel 'portabel' in this table; did you mean portable"):
        table["portabel"]
    with pytest.raises(KeyError, match=r"no kernel 'portable' in this table.$"):
        table[:0]["portable"]
    with pytest.raises(ValueError, match="device must be 'cpu', 'cuda' or None, got 'gpu'"):
        fl.kernels("sgemm", device="gpu")


def test_an_empty_variable_decides_nothing(monkeypatch):
    monkeypatch.setenv("FASTLINALG_DEVICE", "")
    assert "FASTLINALG_DEVICE" not in str(fl.explain((9, 9), (9, 9)))
