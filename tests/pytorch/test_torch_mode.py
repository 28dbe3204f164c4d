"""fastlinalg.torch.use: which calls it takes, and that nothing is left of it."""

from __future__ import annotations

import gc
import logging
import os
import sys
import threading

import pytest

import fastlinalg as fl
from support.pytorch.mode import F32, close, everywhere, flt, is_outside, ours, theirs, torch
from support.threads import in_threads

functional = torch.nn.functional


@pytest.fixture(autouse=True)
def outside():
    yield
    assert is_outside()


# ---------------------------------------------------------------- what it takes
def _calls(normal):
    """(call, what PyTorch makes of it), each a function of tensors that can be in float64 too."""
    a, b, stack, other = normal(5, 7), normal(7, 3), normal(4, 5, 7), normal(4, 7, 3)
    row, matrix, vector = normal(3), normal(5, 3), normal(7)
    into = {"out": torch.empty(5, 3, device=a.device)}
    return [
        (torch.mm, (a, b), {}, "mm"),
        (torch.mm, (b.mT, a.mT), {}, "mm"),
        (torch.mm, (a[::2, ::3], b[::3]), {}, "mm"),
        (torch.mm, (a, b), into, "mm"),
        (torch.matmul, (stack, b), {}, "mm"),
        (torch.matmul, (stack, other), {}, "bmm"),
        (torch.bmm, (stack, other), {"out": torch.empty(4, 5, 3, device=a.device)}, "bmm"),
        (torch.addmm, (row, a, b), {}, "addmm"),
        (torch.addmm, (matrix, a, b), {"beta": 0.5, "alpha": 2}, "addmm"),
        (torch.addmm, (matrix[:, :1], a, b), {"beta": -1} | into, "addmm"),
        (torch.Tensor.addmm_, (matrix, a, b), {"beta": 2}, "addmm"),
        (torch.baddbmm, (row, stack, other), {"alpha": 3}, "baddbmm"),
        (torch.Tensor.baddbmm_, (normal(4, 5, 3), stack, other), {}, "baddbmm"),
        (torch.mv, (a, vector), {}, "addmv"),
        (torch.addmv, (normal(5), a, vector), {"beta": 2}, "addmv"),
        (torch.Tensor.addmv_, (normal(5), a, vector), {}, "addmv"),
        (functional.linear, (a, b.mT, row), {}, "addmm"),
        (functional.linear, (stack, b.mT), {}, "mm"),
        (lambda x, y: torch.einsum("bik,jk->bij", x, y), (stack, b.mT), {}, "bmm"),
        (lambda x, y: torch.tensordot(x, y, dims=1), (stack, b), {}, "mm"),
    ]


def test_each_call_is_computed_by_fastlinalg(normal):
    for call, given, options, name in _calls(normal):
        double = {k: v.double() if isinstance(v, torch.Tensor) else v for k, v in options.items()}
        want = call(*(x.double() for x in given), **double)
        with everywhere() as products:
            got = call(*given, **options)
        assert products.calls == {(name, ""): 1}, (call, products.calls)
        assert got.shape == want.shape and got.dtype == F32 and close(got, want, 7), call
        if "out" in options:
            assert got is options["out"]


def test_the_bits_are_those_of_the_package(normal):
    a, b = normal(65, 130), normal(130, 70)
    for precision in ("accurate", "strict"):
        with everywhere(precision):
            got = a @ b
        assert torch.equal(got, fl.matmul(a, b, precision=precision))


def test_what_pytorch_refuses_it_refuses_in_its_words(normal):
    a, b = normal(5, 7), normal(7, 3)
    for call in (
        lambda: torch.mm(a, b.mT),
        lambda: torch.mm(a[0], b),
        lambda: torch.bmm(normal(2, 5, 7), normal(3, 7, 3)),
        lambda: torch.addmm(normal(4), a, b),
        lambda: torch.mm(a, b.double()),
        lambda: torch.mm(a, b, out=torch.empty(5, 3, device=a.device, dtype=torch.float64)),
        lambda: torch.addmm(normal(3), a, b, alpha=1j),
    ):
        with pytest.raises((RuntimeError, ValueError)) as outside:
            call()
        with everywhere() as products, pytest.raises(type(outside.value)) as inside:
            call()
        assert str(inside.value) == str(outside.value) and not ours(products)
        assert is_outside()


def test_what_is_left_to_pytorch(normal):
    a, b = normal(5, 7), normal(7, 3)
    want = a.double() @ b.double()
    resized = torch.empty(0, device=a.device)
    with everywhere() as products:
        for x, y in ((a.double(), b.double()), (a.half(), b.half()), (a.to(torch.complex64), b.to(torch.complex64))):
            assert (x @ y).dtype == x.dtype
        assert (a[:0] @ b).shape == (0, 3) and not (a[:, :0] @ b[:0]).any()
        torch.mm(a, b, out=resized)
        assert close(torch.sparse.mm(a.to_sparse(), b), want, 7)
    assert resized.shape == (5, 3) and close(resized, want, 7)
    assert theirs(products) == {
        ("mm", "dtype"): 3,
        ("mm", "empty"): 2,
        ("mm", "shape"): 1,
        ("addmm", "no memory"): 1,
    } and not ours(products)


def test_other_devices_are_left_alone():
    a = torch.randn(64, 64)
    want = a @ a
    with flt.use() as products:
        assert torch.equal(a @ a, want)
        for double in (a.double(), torch.nn.Parameter(a.double())):  # the dtype is told first, whoever finds it
            assert (double @ double).dtype == torch.float64
        assert (torch.empty(5, 7, device="meta") @ torch.empty(7, 3, device="meta")).shape == (5, 3)
    assert products.calls == {("mm", "device"): 1, ("mm", "dtype"): 2, ("mm", "no memory"): 1}


def test_autocast_is_left_alone(normal, device):
    a, b = normal(5, 7), normal(7, 3)
    with everywhere() as products, torch.autocast(device, dtype=torch.bfloat16):
        assert (a @ b).dtype == torch.bfloat16
    assert products.calls == {("mm", "dtype"): 1}


@pytest.mark.gpu
def test_the_rule_by_estimates():
    """A large product is for fastlinalg; one whose estimate is longer than what cuBLAS needs at the least is not."""
    a, b = torch.randn(2, 4096, 4096, device="cuda")
    with flt.use() as products:
        a @ b
    assert products.calls == {("mm", ""): 1}
    with flt.use() as products:
        a[:401] @ b[:, :300]
        a[:3, :7].mT @ b[:3]
    assert sum(products.calls.values()) == 2
    with flt.use("strict") as products:
        a[:401] @ b[:, :300]
    assert products.calls == {("mm", ""): 1}


# ---------------------------------------------------------------- gradients
def _model(device):
    torch.manual_seed(3)
    layers = torch.nn.Linear(7, 9), torch.nn.GELU(), torch.nn.Linear(9, 9), torch.nn.Tanh(), torch.nn.Linear(9, 2)
    return torch.nn.Sequential(*layers).to(device)


def _gradients(model, x, wrap=lambda f, x: f(x)):
    model.zero_grad()
    wrap(model, x).square().sum().backward()
    return [p.grad.clone() for p in model.parameters()]


def test_forward_and_backward(normal, device):
    model, x = _model(device), normal(6, 7)
    want = _gradients(model.double(), x.double())
    model.float()
    with everywhere() as products:
        got = _gradients(model, x)
    assert ours(products) == {"addmm": 3, "mm": 5}
    assert all(close(g, w, 50) for g, w in zip(got, want, strict=True))


def test_a_backward_pass_is_in_the_mode_where_it_is_started(normal, device):
    model, x = _model(device), normal(6, 7)
    with everywhere() as products:
        loss = model(x).sum()
    forward = dict(products.calls)
    loss.backward()
    assert products.calls == forward
    loss = model(x).sum()
    with everywhere() as products:
        loss.backward()
    assert ours(products) == {"mm": 5}


def test_checkpoints_are_computed_again_in_the_mode(normal, device):
    model, x = _model(device), normal(6, 7)
    with everywhere() as products:
        plain = _gradients(model, x)
    with everywhere() as again:
        wrapped = _gradients(model, x, lambda f, x: torch.utils.checkpoint.checkpoint(f, x, use_reentrant=False))
    assert all(torch.equal(a, b) for a, b in zip(plain, wrapped, strict=True))
    # The last layer's output is of no use to the backward pass.
    assert ours(again) == {"addmm": 5, "mm": 5} and ours(products) == {"addmm": 3, "mm": 5}


def test_in_place_results_are_noticed_by_autograd(normal):
    a, b, c = normal(5, 7, requires_grad=True), normal(7, 3), normal(5, 3)
    with everywhere():
        y = (a @ b).exp()
        version = c._version
        torch.mm(a.detach(), b, out=c)
        assert c._version == version + 1
        y_saved = y * c
        c.addmm_(a.detach(), b)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y_saved.sum().backward()


def test_inference_and_transforms(normal, device):
    a, b = normal(4, 5, 7), normal(7, 3)

    def loss(x):
        return (x @ b).square().sum()

    with everywhere() as products:
        with torch.inference_mode():
            a @ b
        mapped = torch.vmap(lambda x: x @ b)(a)
        gradient = torch.vmap(torch.func.grad(loss))(a)
        _, tangent = torch.func.jvp(loss, (a,), (a,))
    assert not theirs(products) and sum(ours(products).values()) >= 6
    exact = a.double().requires_grad_()
    (want,) = torch.autograd.grad((exact @ b.double()).square().sum(), exact)
    assert close(mapped, exact.detach() @ b.double(), 7) and close(gradient, want, 100)
    assert torch.allclose(tangent.double(), (want * exact.detach()).sum(), rtol=1e-4)


# ---------------------------------------------------------------- compiled, captured, watched
@pytest.mark.parametrize("dynamic", [False, True])
def test_compiled_models(normal, device, dynamic):
    model = _model(device)
    compiled = torch.compile(model, fullgraph=True, dynamic=dynamic)
    for count in (6, 5):
        x = normal(count, 7)
        want = _gradients(model, x)
        outside = _gradients(compiled, x)  # compiled outside the mode, used in it
        with everywhere() as products:
            got = _gradients(compiled, x)
        # On a GPU Inductor makes a product and a sum of an addmm, to fuse the sum with what follows.
        # And for one compiled anew for any size it traces the products again, on tensors without memory.
        assert sum(ours(products).values()) == 8 and not {why for _, why in theirs(products)} - {"no memory"}, products
        assert all(torch.allclose(g, w, rtol=1e-4, atol=1e-4) for g, w in zip(got, want, strict=True))
        assert all(torch.allclose(g, w, rtol=1e-4, atol=1e-4) for g, w in zip(outside, want, strict=True))


@pytest.mark.gpu
def test_cuda_graphs_repeat_what_was_captured():
    a, b = torch.randn(2, 1024, 1024, device="cuda")
    with flt.use() as products:
        a @ b
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = a @ b
    a.normal_()
    graph.replay()
    assert torch.equal(y, fl.matmul(a, b)) and ours(products) == {"mm": 2}


def test_python_modes_see_the_calls(normal):
    from torch.fx.experimental.proxy_tensor import make_fx
    from torch.utils.flop_counter import FlopCounterMode

    a, b = normal(5, 7), normal(7, 3)
    with everywhere() as products:
        with FlopCounterMode(display=False) as flops:
            a @ b
        assert flops.get_total_flops() == 2 * 5 * 7 * 3
        traced = make_fx(lambda x, y: x @ y)(a, b)
    assert ours(products) == {"mm": 2}
    assert [node.target for node in traced.graph.nodes][2] is torch.ops.aten.mm.default


def test_subclasses_see_the_calls(normal):
    seen = []

    class Watched(torch.Tensor):
        @classmethod
        def __torch_dispatch__(cls, op, types, given=(), options=None):
            seen.append(op)
            with torch._C._DisableTorchDispatch():
                return op(*given, **(options or {}))

    class Named(torch.Tensor):
        pass

    a, b = normal(5, 7), normal(7, 3)
    with everywhere() as products:
        assert close(a.as_subclass(Watched) @ b, a.double() @ b.double(), 7)
        assert seen == [torch.ops.aten.mm.default]
        assert isinstance(a.as_subclass(Named) @ b, Named)
    assert ours(products) == {"mm": 2}


def test_negated_views(normal):
    a = torch.complex(normal(5, 7), normal(5, 7)).conj().imag
    assert a.is_neg()
    b = normal(7, 3)
    with everywhere() as products:
        assert close(a @ b, a.double() @ b.double(), 7)
    assert ours(products) == {"mm": 1}


# ---------------------------------------------------------------- the rule of what it holds for
def test_blocks_nest(normal):
    a = normal(5, 5)
    with everywhere() as outer:
        a @ a
        with everywhere("strict") as inner:
            a @ a
            flt.disable()
            a @ a
            assert is_outside()
        a @ a
    assert ours(outer) == {"mm": 2} and ours(inner) == {"mm": 1}
    assert (outer.precision, inner.precision) == ("accurate", "strict")


def test_enable_and_disable(normal):
    first = flt.enable()
    try:
        assert flt._mode._current() is first
        with everywhere() as inner:
            normal(5, 5) @ normal(5, 5)
        assert flt._mode._current() is first and ours(inner) == {"mm": 1}
        assert flt.enable("strict").precision == "strict"
    finally:
        flt.disable()
    flt.disable()
    assert is_outside()


def test_leaving_it_in_a_transformed_function(normal):
    a = normal(4, 5, 5)

    def leaves(x):
        y = x @ x
        flt.disable()
        return y @ y

    with everywhere() as products:
        got = torch.vmap(leaves)(a)
    want = (a.double() @ a.double()) @ (a.double() @ a.double())
    assert close(got, want, 100) and ours(products) == {"bmm": 1}


def test_as_a_decorator(normal):
    seen = []

    @everywhere("strict")
    def call(a, depth):
        seen.append(flt._mode._current())
        if depth:
            call(a, depth - 1)
        return a @ a

    call(normal(5, 5), 2)
    assert [ours(products) for products in seen] == [{"mm": 1}] * 3 and is_outside()


def test_exceptions_end_it(normal):
    with pytest.raises(ZeroDivisionError), everywhere():
        normal(5, 5) @ normal(5, 5)
        raise ZeroDivisionError
    with pytest.raises(ValueError, match="'strict', 'accurate' or 'reproducible', got 'fast'"):
        flt.use("fast")
    with everywhere() as products:
        with pytest.raises(RuntimeError):
            normal(5, 5) @ normal(4, 5)
        normal(5, 5) @ normal(5, 5)
    assert ours(products) == {"mm": 1}


def test_it_holds_for_its_thread_alone(normal):
    a = normal(64, 64)
    begun = threading.Barrier(4)

    def work(number):
        assert is_outside()
        with everywhere("strict" if number % 2 else "accurate") as products:
            begun.wait(timeout=60)
            for _ in range(50):
                a.clone().requires_grad_().square().sum().backward()
                a @ a
        assert ours(products) == {"mm": 50} and is_outside()

    with everywhere() as here:
        in_threads(work, range(4))
    assert not here.calls


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_child_of_fork_goes_on_in_it():
    """On the CPU, where a data loader works."""
    a = torch.randn(8, 8)
    with flt.use() as products:
        child = os.fork()
        if child == 0:
            done = torch.equal(a @ a, a @ a) and products.calls == {("mm", "device"): 2}
            os._exit(0 if done else 1)
        assert os.waitpid(child, 0)[1] == 0
    assert not products.calls


def test_it_says_which_calls_went_where(normal, caplog):
    a = normal(5, 5)
    with caplog.at_level(logging.INFO, "fastlinalg"):
        with everywhere():
            pass
        assert not caplog.records
        with everywhere():
            a @ a
            torch.addmm(a, a, a)
            a.double() @ a.double()
    assert [record.getMessage() for record in caplog.records] == [
        "torch products, accurate, by fastlinalg: 1 addmm, 1 mm; by PyTorch: 1 mm (dtype)"
    ]


def test_without_a_device_it_says_once_that_it_does_nothing(monkeypatch, caplog):
    monkeypatch.setattr(flt._mode.cuda, "is_available", lambda: False)
    flt._mode._warn_without_device.cache_clear()
    with everywhere(), flt.use(), flt.use():  # what is for tests alone says nothing
        pass
    (warning,) = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert "PyTorch computes all of them, as there is no CUDA device: " in warning.getMessage()
    flt._mode._warn_without_device.cache_clear()
    monkeypatch.setattr(flt._mode.cuda, "is_available", lambda: True)
    flt.enable()
    flt.disable()
    assert caplog.records[-1] is warning


def test_its_repr_says_what_it_is(normal):
    mode = everywhere("strict", keep_weights=normal(5, 5))
    with mode as products:
        normal(5, 5) @ normal(5, 5)
    assert repr(mode) == "fastlinalg.torch.use('strict', keep_weights=...)"
    assert repr(flt.use()) == "fastlinalg.torch.use('accurate')"
    assert repr(products) == f"<fastlinalg.torch.Products, strict, {products}>" and "1 mm" in repr(products)


def test_it_keeps_no_object_alive_and_loses_none(normal):
    a = normal(5, 5)
    kept = []
    for _ in range(20):
        with everywhere() as products:
            (a.clone().requires_grad_() @ a).sum().backward()
        kept.append(products)
    gc.collect()
    del products
    others = [object() for _ in kept]
    assert [sys.getrefcount(x) for x in kept] == [sys.getrefcount(x) for x in others]
    assert all(ours(x) == {"mm": 2} for x in kept)


def test_other_operators_have_no_kernel_of_the_mode():
    with everywhere():
        pass
    key = flt._mode._KEY
    for name in ("aten::add.Tensor", "aten::linear", "aten::matmul", "aten::mul.Tensor"):
        assert not torch._C._dispatch_has_kernel_for_dispatch_key(name, key)
    for name in ("aten::mm", "aten::mm.out", "aten::addmm_", "aten::baddbmm.out", "aten::addmv"):
        assert torch._C._dispatch_has_kernel_for_dispatch_key(name, key)
