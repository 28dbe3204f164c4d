"""At DEBUG the logger says once for each new shape which kernel runs, and why the others do not."""

from __future__ import annotations

import logging
import re
import textwrap

import numpy as np
import pytest

import fastlinalg as fl


@pytest.fixture
def lines(caplog):
    caplog.set_level(logging.DEBUG, "fastlinalg")
    return lambda: [record.getMessage() for record in caplog.records if record.name == "fastlinalg"]


def ones(*shape):
    return np.ones(shape, np.float32)


def test_each_new_shape_is_named_once(lines):
    for _ in range(3):
        fl.sgemm(ones(41, 43), ones(43, 47), device="cpu")
        fl.sgemm(ones(41, 43), ones(43, 53), device="cpu")
    first = [line for line in lines() if "41x47x43" in line]
    second = [line for line in lines() if "41x53x43" in line]
    assert len(first) == 1 and len(second) == 1, lines()


def test_the_line_names_the_kernel_and_why_others_were_not(lines):
    fl.sgemm(ones(59, 61), ones(61, 67), device="cpu")
    (line,) = [line for line in lines() if "59x67x61" in line]
    rows = [row for row in fl.kernels("sgemm") if row.device == "cpu"]
    assert line.startswith("sgemm ") and "cpu" in line
    for row in rows:
        assert row.name in line, line
        if not row.available:
            assert row.needs in line
    if len(rows) > 1:
        assert "not taken" in line


def test_times_of_short_calls_are_not_rounded_to_nothing(lines):
    fl.sgemm(ones(3, 7), ones(7, 5), device="cpu")
    (line,) = [line for line in lines() if "3x5x7" in line]
    estimates = re.findall(r"estimated ([^;)]+)", line)
    assert len(estimates) > 1 and all(re.fullmatch(r"[1-9][0-9.e+]* (ns|µs|ms|s)", x) for x in estimates), line


def test_all_operations_and_named_kernels(lines):
    fl.sgemv(ones(71, 73), ones(73), device="cpu")
    fl.transpose(ones(79, 83), device="cpu")
    fl.sgemm(ones(3, 89, 5), ones(3, 5, 7), kernel="reference")
    text = "\n".join(lines())
    for words in ("sgemv 71x73", "transpose 79x83", "89x7x5 batch 3 -> cpu reference"):
        assert words in text


def test_silent_unless_asked(capfd):
    fl.sgemm(ones(97, 101), ones(101, 103))
    assert capfd.readouterr() == ("", "")


def test_a_logger_that_raises_does_not_break_the_process(lines):
    class Broken(logging.Handler):
        def emit(self, record):
            raise RuntimeError("broken handler")

    handler, logger = Broken(), logging.getLogger("fastlinalg")
    logger.addHandler(handler)
    try:
        with pytest.raises(RuntimeError, match="broken handler"):
            fl.matmul(ones(107, 109), ones(109, 113), device="cpu")
    finally:
        logger.removeHandler(handler)
    assert (fl.matmul(ones(107, 109), ones(109, 113), device="cpu") == 109).all()


def test_a_method_within_a_method_of_the_same_plan_is_an_error(python):
    program = """
    import faulthandler, logging
    import numpy as np, fastlinalg as fl
    faulthandler.dump_traceback_later(20, exit=True)

    class Handler(logging.Handler):
        def emit(self, record):
            ask("log")

    def ask(where):
        try:
            print(where, plan.kernel)
        except RuntimeError as error:
            print(where, "running in this thread" in str(error))

    class Operand:
        array = np.ones((4, 4), np.float32)
        def __dlpack_device__(self): return self.array.__dlpack_device__()
        def __dlpack__(self, **keywords): return self.array.__dlpack__(**keywords)
        def __del__(self): ask("destructor")

    plan = fl.Matmul(Operand(), np.ones((4, 4), np.float32))
    fl.matmul(np.ones((5, 5), np.float32), np.ones((5, 5), np.float32))  # the plan's shape is new again
    logging.getLogger("fastlinalg").setLevel(logging.DEBUG)
    logging.getLogger("fastlinalg").addHandler(Handler())
    plan.reset_operands(out=np.empty((4, 4), np.float32, order="F"))
    plan.free()
    print(plan.kernel)
    """
    assert python(textwrap.dedent(program)).split("\n")[:3] == ["log True", "destructor True", "None"]
