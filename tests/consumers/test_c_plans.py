"""Plans of the C interface, and its log."""

from __future__ import annotations

import ctypes

import pytest

import fastlinalg as fl
from support.c_interface import FL_INVALID_VALUE, PlanInfo, gemm, gemm_arguments, needs_installation, options
from support.source_tree import TESTS
from support.threads import in_threads

pytestmark = needs_installation


@pytest.fixture
def plan(library, memory):
    """2 x 3 times 3 x 2, freed in the end."""
    made = ctypes.c_void_p()

    def make(**changes):
        constant = changes.pop("constant", 0)
        *call, given = gemm_arguments(memory, **changes)
        for after_ld in (13, 10, 8):  # of c, b and a
            call.insert(after_ld, 0)
        call += [1, constant, given]
        return library.fl_plan_sgemm(ctypes.byref(made), *call), made

    yield make
    library.fl_plan_free(made)


def test_a_plan_is_executed_on_what_is_there(library, memory, plan):
    status, made = plan()
    assert status == 0 and list(memory[16:20]) == [16, 17, 18, 19], "nothing is computed yet"
    for _ in range(3):
        assert library.fl_plan_execute(made, None) == 0
        assert list(memory[16:20]) == gemm(memory[0:6], memory[8:14])
        memory[0], memory[9] = memory[0] + 1, memory[9] - 2
    info = PlanInfo()
    assert library.fl_plan_get_info(made, ctypes.byref(info)) == 0
    assert info.device == -1 and info.kernel.decode() in {row.name for row in fl.kernels("sgemm")}


def test_a_plan_on_other_operands(library, memory, plan):
    _, made = plan()
    other = (ctypes.c_float * 6)(3, 1, 4, 1, 5, 9)
    result = (ctypes.c_float * 4)()
    assert library.fl_plan_reset_operands(made, other, None, result) == 0
    assert library.fl_plan_execute(made, None) == 0
    assert list(result) == gemm(other, memory[8:14]) and list(memory[16:20]) == [16, 17, 18, 19]
    assert library.fl_plan_reset_operands(made, None, 4098, None) == FL_INVALID_VALUE
    assert b"fl_plan_reset_operands: b is not aligned to 4 bytes" in library.fl_last_error()
    assert library.fl_plan_execute(made, None) == 0, "it is as it was"


@pytest.mark.parametrize(("constant", "ones"), [(1, ("a", "b")), (2, ("b", "a"))])
def test_a_constant_operand_that_is_given_has_new_values(library, constant, ones):
    """By the model of AMX, which keeps its terms on every CPU."""
    k, c = 300, (ctypes.c_float * 4)()
    memory = {name: (ctypes.c_float * (2 * k))(*[1] * (2 * k)) for name in ones}
    made, given = ctypes.c_void_p(), options(kernel=b"amx_bf16x6_model")
    call = (0, 0, 2, 2, k, 1, memory["a"], k, 0, memory["b"], 2, 0, 0, c, 2, 0, 1, constant, given)
    assert library.fl_plan_sgemm(ctypes.byref(made), *call) == 0
    kept, other = (memory[name] for name in ones)
    for place, factor, given, want in (
        (kept, 1, None, k),
        (kept, 2, None, k),
        (other, 3, other, 3 * k),
        (kept, 4, kept, 12 * k),
    ):
        place[:] = [factor] * (2 * k)
        operands = (given if given is memory["a"] else None), (given if given is memory["b"] else None)
        assert library.fl_plan_reset_operands(made, *operands, None) == 0
        assert library.fl_plan_execute(made, None) == 0 and list(c) == [want] * 4
    library.fl_plan_free(made)


ONE_ROW_OR_COLUMN = [({"m": 1}, (0, 1)), ({"n": 1}, (0, 2)), ({"m": 1, "n": 1}, (0,))]


@pytest.mark.parametrize(("size", "written"), ONE_ROW_OR_COLUMN, ids=str)
def test_a_plan_with_one_row_or_one_column(library, memory, plan, size, written):
    """It is one of SGEMV, whose operands the plan's may be the other way round."""
    status, made = plan(**size)
    a, b = (ctypes.c_float * 6)(3, 1, 4, 1, 5, 9), (ctypes.c_float * 6)(2, 6, 5, 3, 5, 8)
    used = [memory[0:6], memory[8:14]]
    for given in ((None, None), (a, None), (None, b)):
        used = [new or old for new, old in zip(given, used, strict=True)]
        assert library.fl_plan_reset_operands(made, *given, None) == 0
        assert library.fl_plan_execute(made, None) == 0
        product = gemm(*used)
        assert [memory[16 + i] for i in written] == [product[i] for i in written]
    info = PlanInfo()
    assert library.fl_plan_get_info(made, ctypes.byref(info)) == 0
    assert info.kernel.decode() in {row.name for row in fl.kernels("sgemv")}
    assert status == 0 and not any(memory[16 + i] != 16 + i for i in range(4) if i not in written)


def test_a_plan_walks_vectors_backwards(library, memory):
    made = ctypes.c_void_p()
    x, y = (ctypes.c_float * 3)(1, 10, 100), (ctypes.c_float * 2)()
    call = (ctypes.byref(made), 0, 2, 3, 1, memory, 3, x, -1, 0, y, -1, None)
    assert library.fl_plan_sgemv(*call) == 0
    assert library.fl_plan_execute(made, None) == 0 and list(y) == [345, 12]
    other = (ctypes.c_float * 3)(0, 0, 1)
    assert library.fl_plan_reset_operands(made, None, other, None) == 0
    assert library.fl_plan_execute(made, None) == 0 and list(y) == [3, 0]
    library.fl_plan_free(made)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"m": -1}, "fl_plan_sgemm: m must be at least 0, got -1"),
        ({"a": None}, "fl_plan_sgemm: a is NULL"),
        ({"constant": 3}, "constant must be FL_NO_OPERAND, FL_OPERAND_A or FL_OPERAND_B, got 3"),
        ({"options": options(kernel=b"nonsense")}, "unknown sgemm kernel 'nonsense'"),
    ],
)
def test_plans_that_cannot_be(library, plan, changes, message):
    status, made = plan(**changes)
    assert status == FL_INVALID_VALUE and made.value is None
    assert message in library.fl_last_error().decode()


def test_what_was_there_before_is_no_plan(library, memory):
    for make, wrong in (
        (library.fl_plan_sgemm, (0, 0, -1, 2, 3, 1, memory, 3, 0, memory, 2, 0, 0, memory, 2, 0, 1, 0, None)),
        (library.fl_plan_sgemv, (0, -1, 3, 1, memory, 3, memory, 1, 0, memory, 1, None)),
    ):
        made = ctypes.c_void_p(4096)
        assert make(ctypes.byref(made), *wrong) == FL_INVALID_VALUE and made.value is None
        assert make(None, *wrong) == FL_INVALID_VALUE and b"plan is NULL" in library.fl_last_error()


def test_no_plan(library):
    for call in (library.fl_plan_execute(None, None), library.fl_plan_reset_operands(None, None, None, None)):
        assert call == FL_INVALID_VALUE and b"plan is NULL" in library.fl_last_error()
    library.fl_plan_free(None)


def test_a_plan_keeps_its_name_of_a_kernel(library, memory, plan):
    """It looks for it again where the number of threads is another one."""
    name = ctypes.create_string_buffer(b"reference")
    status, made = plan(options=options(kernel=ctypes.cast(name, ctypes.c_char_p)))
    name.value = b"gone"
    info = PlanInfo()
    with fl.num_threads(3):
        assert status == 0 and library.fl_plan_execute(made, None) == 0
    assert library.fl_plan_get_info(made, ctypes.byref(info)) == 0 and info.kernel == b"reference"


def test_threads_take_turns_at_a_plan(library):
    """Each execution adds to what those before it have left."""
    n, turns = 300, 50  # so long that another thread comes in meanwhile
    ones, made = (ctypes.c_float * (n * n))(*[1] * (n * n)), ctypes.c_void_p()
    sums = (ctypes.c_float * (n * n))()
    call = (0, 0, n, n, n, 1, ones, n, 0, ones, n, 0, 1, sums, n, 0, 1, 0, None)
    assert library.fl_plan_sgemm(ctypes.byref(made), *call) == 0
    statuses = []
    in_threads(lambda _: statuses.extend([library.fl_plan_execute(made, None) for _ in range(turns)]), range(4))
    assert statuses == [0] * 4 * turns and set(sums) == {4 * turns * n}
    library.fl_plan_free(made)


def test_a_child_of_fork_uses_a_plan(python):
    """Which another thread of its parent was using."""
    python(
        "import signal, ctypes, os, threading, fastlinalg as fl\n"
        "signal.alarm(60)\n"
        "library = ctypes.CDLL(fl.load_library())\n"
        "n = 64; square = ctypes.c_float * (n * n); a = square(*[1] * (n * n)); c = square(); p = ctypes.c_void_p()\n"
        "l, f = ctypes.c_int64, ctypes.c_float\n"
        "assert library.fl_plan_sgemm(ctypes.byref(p), 0, 0, l(n), l(n), l(n), f(1), a, l(n), l(0), a, l(n), l(0),\n"
        "                             f(0), c, l(n), l(0), l(1), 0, None) == 0\n"
        "stop = False\n"
        "def work():\n"
        "    while not stop: library.fl_plan_execute(p, None)\n"
        "thread = threading.Thread(target=work); thread.start()\n"
        "for _ in range(20):\n"
        "    pid = os.fork()\n"
        "    if pid == 0:\n"
        "        c[0] = 0\n"
        "        os._exit(library.fl_plan_execute(p, None) + (c[0] != n))\n"
        "    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0\n"
        "stop = True; thread.join()\n"
    )


# ---------------------------------------------------------------- the log
LOG = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_void_p)


@pytest.fixture
def log(library):
    """Lines of the log, and what was given for `user`."""
    lines = []
    write = LOG(lambda line, user: lines.append((line.decode(), user)))
    assert library.fl_set_log(write, ctypes.c_void_p(42)) == 0
    yield lines
    assert library.fl_set_log(LOG(), None) == 0


def test_the_log_names_the_kernel_of_new_sizes(library, memory, log):
    for _ in range(3):
        assert library.fl_sgemm(*gemm_arguments(memory)) == 0
        assert library.fl_transpose(2, 3, memory, 3, ctypes.byref(memory, 128), 2, None) == 0
        assert library.fl_transpose(1, 3, memory, 3, ctypes.byref(memory, 128), 1, None) == 0
    product, transpose, other = log
    assert other[0].startswith("transpose 1x3 -> cpu ")
    assert product[0].startswith("sgemm 2x2x3 -> cpu ") and product[1] == 42
    assert transpose[0].startswith("transpose 2x3 -> cpu ")
    others = []
    write = LOG(lambda line, user: others.append(line))
    assert library.fl_set_log(write, None) == 0
    assert library.fl_sgemm(*gemm_arguments(memory)) == 0 and len(others) == 1, "these have heard nothing"
    assert library.fl_set_log(LOG(), None) == 0
    assert library.fl_sgemm(*gemm_arguments(memory, m=1)) == 0
    assert len(log) == 3


def test_the_log_of_plans(library, plan, log):
    _, made = plan(k=1)
    assert [line for line, _ in log if line.startswith("sgemm 2x2x1 -> cpu ")]
    assert library.fl_plan_execute(made, None) == 0 and len(log) == 1


def test_the_log_says_what_is_ignored(python):
    out = python(
        f"import ctypes, sys, fastlinalg as fl; sys.path.insert(0, {str(TESTS)!r})\n"
        "from support.c_interface import options\n"
        "library = ctypes.CDLL(fl.load_library())\n"
        "write = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_void_p)(lambda line, user: print(line.decode()))\n"
        "library.fl_set_log(write, None)\n"
        "x = (ctypes.c_float * 4)()\n"
        "l = ctypes.c_int64\n"
        "for n, given in ((2, options(device=b'cpu')), (1, None), (1, None)):\n"
        "    assert library.fl_transpose(l(1), l(n), x, l(2), ctypes.byref(x, 8), l(1), given) == 0\n"
        "    print('called')\n",
        FASTLINALG_NUM_THREADS="many",
        FASTLINALG_COMPUTE_CAPABILITY="new",
    )
    assert out.count("FASTLINALG_NUM_THREADS") == out.count("FASTLINALG_COMPUTE_CAPABILITY") == 1
    assert "CAPABILITY" not in out.split("called")[0], "a call on the CPU does not ask for it"
