"""fork: the child computes on the CPU whatever threads of its parent were doing, and gets an error for a used GPU."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.command import SETUP
from support.cpp_program import build, loaded_library, run
from support.source_tree import ROOT


def test_the_c_interface_from_threads_that_fork(tmp_path):
    source, library = Path(__file__).parent / "threads_and_forks.cpp", loaded_library()
    flags = ("-O1", "-pthread", f"-I{ROOT / 'cpp' / 'include'}", source, library, f"-Wl,-rpath,{library.parent}")
    done = run(build(tmp_path / "threads", ROOT / "cpp", *flags, seconds=100), 100)
    assert done.returncode == 0 and done.stdout == "all right\n", done.stdout + done.stderr


def test_fork_after_use(python):
    """The child has none of the parent's worker threads, and must not wait for them."""
    python(
        "import signal; signal.alarm(60)\n" + SETUP + "pid = os.fork()\n"
        "same = np.array_equal(fl.matmul(a, a, device='cpu'), want)\n"
        "if pid == 0: os._exit(0 if same else 3)\n"
        "assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0 and same\n"
    )


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing(python, method, tmp_path):
    script = tmp_path / "workers.py"
    script.write_text(
        SETUP + "import multiprocessing\n"
        "def work(i): return fl.matmul(a, a, device='cpu').tobytes()\n"
        "if __name__ == '__main__':\n"
        f"    with multiprocessing.get_context('{method}').Pool(2) as pool:\n"
        "        assert all(got == want.tobytes() for got in pool.map(work, range(4), 1))\n"
    )
    python("import runpy, sys; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')", str(script))


# Threads run work(i) over and over; each of ten children runs child(), and has to end with 0.
FORKS = (
    "import signal; signal.alarm(90)\n" + SETUP + "import threading\n"
    "{definitions}"
    "stop = False\n"
    "def loop(i):\n"
    "    while not stop: work(i)\n"
    "threads = [threading.Thread(target=loop, args=(i,)) for i in range({threads})]\n"
    "for thread in threads: thread.start()\n"
    "status = 0\n"
    "for _ in range(10):\n"
    "    pid = os.fork()\n"
    "    if pid == 0:\n"
    "        signal.alarm(20)\n"
    "        try: child()\n"
    "        except BaseException as error: os._exit(print(repr(error), file=sys.stderr, flush=True) or 3)\n"
    "        os._exit(0)\n"
    "    status = status or os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])\n"
    "stop = True\n"
    "for thread in threads: thread.join()\n"
    "sys.exit(status)\n"
)


def test_fork_while_another_thread_is_in_a_call(python):
    definitions = (
        "def work(i): fl.matmul(a, a, device='cpu')\n"
        "def child(): assert np.array_equal(fl.matmul(a, a, device='cpu'), want)\n"
    )
    python(FORKS.format(definitions=definitions, threads=1))


def test_fork_while_another_thread_executes_a_plan(python):
    """The child has the plan, and a lock whose holder it has not."""
    definitions = (
        "plan = fl.Matmul(a, a, device='cpu')\n"
        "def work(i): plan.execute()\n"
        "def child():\n"
        "    assert np.array_equal(plan.execute(), want)\n"
        "    threading.Thread(target=execute).start()\n"
        "    plan.reset_operands(b=np.eye(300, dtype='f4'))\n"
        "    assert np.array_equal(plan.execute(), a)\n"
        "    plan.free()\n"
        "def execute(): assert np.array_equal(plan.execute()[0], plan.execute()[0])\n"
    )
    python(FORKS.format(definitions=definitions, threads=1))


def test_fork_while_other_threads_make_plans_and_log(python):
    definitions = (
        "import io, logging\n"
        "logging.basicConfig(level='DEBUG', stream=io.StringIO())\n"
        "plans, n = [fl.Matmul(a, a, device='cpu') for _ in range(3)], [0, 0, 0]\n"
        "def work(i):\n"
        "    n[i] += 1\n"
        "    plans[i].reset_operands(a=a)\n"
        "    plans[i].execute()\n"
        "    x = np.ones((n[i] % 50 + 10 * i, 30), 'f4')\n"
        "    with fl.Matmul(x, x.T, device='cpu') as plan: plan.execute()\n"
        "def child():\n"
        "    assert all(np.array_equal(plan.execute(), want) for plan in plans)\n"
        "    x = np.ones((77, 30), 'f4')\n"
        "    assert (fl.matmul(x, x.T, device='cpu') == 30).all()\n"
    )
    python(FORKS.format(definitions=definitions, threads=3))


def test_fork_within_a_method_of_a_plan(python):
    """By a filter of the log: the thread that runs the method is the one that the child has."""
    python(
        "import signal; signal.alarm(60)\n" + SETUP + "import logging\n"
        "plan, children = fl.Matmul(a, a, device='cpu'), []\n"
        "def fork_once(record):\n"
        "    if children: return\n"
        "    children.append(os.fork())\n"
        "    try: plan.execute()\n"
        "    except RuntimeError as error: assert 'is running in this thread' in str(error)\n"
        "    else: os._exit(4)\n"
        "fl.matmul(a[:5], a, device='cpu')  # a shape that is not that of the call before is logged\n"
        "logging.getLogger('fastlinalg').addFilter(fork_once)\n"
        "logging.getLogger('fastlinalg').setLevel('DEBUG')\n"
        "plan.reset_operands(out=np.empty((300, 300), 'f4', order='F'))  # the kernel is chosen anew\n"
        "same = np.array_equal(plan.execute(), want) and np.array_equal(plan.execute(), want)\n"
        "assert len(children) == 1\n"
        "if children[0] == 0: os._exit(0 if same else 3)\n"
        "assert same and os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1]) == 0\n"
    )


@pytest.mark.parametrize("call", ["matmul(a, a", "ssyrk(a", "grouped_matmul([a] * 3, [a] * 3", "Matmul(a, a"])
def test_fork_within_a_long_call(call, python):
    """By who is told how far it is: the child has not the threads that compute the rest, and says so, or ends right."""
    python(
        SETUP + "import signal\n"
        "from fastlinalg import _core\n"
        "_core.testing.set_watch_interval(0)\n"
        "fl.set_num_threads(4)\n"
        "a, children = np.ones((900, 900), 'f4'), []\n"
        "def fork_once(done):\n"
        "    if done > 0.3 and not children:\n"
        "        children.append(os.fork())\n"
        "        signal.alarm(60)\n"
        "try:\n"
        "    with fl.progress(fork_once):\n"
        f"        result = fl.{call}, device='cpu')\n"
        "        if isinstance(result, fl.Matmul): result = result.execute()\n"
        "except RuntimeError as error:\n"
        "    same = (fl.matmul(a, a, device='cpu') == 900).all()\n"
        "    os._exit(0 if children == [0] and 'forked within a call' in str(error) and same else 3)\n"
        "same = (np.asarray(result) == 900).all()\n"
        "if children == [0]: os._exit(0 if same else 3)  # between two steps of the call: there was no rest\n"
        "assert len(children) == 1 and same\n"
        "assert os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1]) == 0\n"
    )


def test_no_lock_is_held_that_a_child_could_wait_for():
    """A lock belongs to a process (runtime/fork.h), a first use needs none (core/lazy.h): a guard is a lock too."""
    shared = re.compile(
        r"^(static |inline )*std::(\w*mutex|once_flag|condition_variable)\b"  # at namespace scope
        r"|^\s+static (?!constexpr|constinit|thread_local)[^()]*(=|\{|;$)"  # in a function
    )
    found = []
    for path in sorted((ROOT / "cpp").rglob("*")):
        if path.suffix not in (".h", ".cpp"):
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if shared.match(line):
                found.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()}")
    assert not found, "\n".join(found)


# ---------------------------------------------------------------- with a GPU
@pytest.mark.gpu
def test_child_of_fork_gets_an_error_on_a_used_context(python):
    python(
        "import signal; signal.alarm(60)\n" + SETUP + "fl.matmul(a, a, device='cuda')\n"
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "    same = np.array_equal(fl.matmul(a, a, device='cpu'), want)\n"
        "    try: fl.matmul(a, a, device='cuda')\n"
        "    except fl.CudaError as error: os._exit(0 if same and 'fork' in str(error) else 4)\n"
        "    os._exit(3)\n"
        "assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0\n"
        "fl.matmul(a, a, device='cuda')\n"
    )


@pytest.mark.gpu
def test_child_of_fork_gets_an_error_from_a_plan_on_the_gpu(python):
    """The plan was running in another thread; the arrays that it was made with may go in the child too."""
    definitions = (
        "x = fl.DeviceArray.from_numpy(a)\n"
        "fl.matmul(x, x)\n"
        "plan = fl.Matmul(x, x)\n"
        "def work(i): plan.execute()\n"
        "def child():\n"
        "    global x\n"
        "    assert np.array_equal(fl.matmul(a, a), fl.matmul(a, a, device='cpu'))\n"
        "    try: plan.execute()\n"
        "    except fl.CudaError as error: assert 'fork' in str(error)\n"
        "    else: os._exit(4)\n"
        "    plan.free()\n"
        "    x = None\n"
    )
    python(FORKS.format(definitions=definitions, threads=1))
