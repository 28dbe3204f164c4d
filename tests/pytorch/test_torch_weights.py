"""Weights whose splits stay: what changes one is seen, and what is kept is bounded and given back.

On the CPU a copy of the weight stands in for its split, so that a stale one gives wrong products there too.
"""

from __future__ import annotations

import copy
import gc
import io
import threading

import pytest

import fastlinalg as fl
from support.pytorch.mode import close, everywhere, flt, torch
from support.threads import in_threads

functional, nn = torch.nn.functional, torch.nn
# A layer, inputs to it, and a layer before it: on a GPU so large that kernels which split serve them.
K, N, M, H = (1024, 768, 512, 896) if fl.cuda.is_available() else (96, 64, 32, 80)


@pytest.fixture(params=[pytest.param("cuda", marks=pytest.mark.gpu) if fl.cuda.is_available() else "cpu"])
def device(request):
    """Products of CPU tensors go to a GPU where there is one, and keep nothing."""
    return request.param


@pytest.fixture
def weight(normal):
    return nn.Parameter(normal(N, K))


@pytest.fixture
def x(normal):
    return normal(M, K)


def keeping(*weights, **options):
    return everywhere(keep_weights=weights, **options)


def kept(mode) -> int:
    """Bytes."""
    return mode._weights.nbytes


def fresh(x, weight):
    return functional.linear(x.double(), weight.detach().double())


def warm(x, weight) -> None:
    """From its second product on it is kept."""
    for _ in range(3):
        assert close(functional.linear(x, weight), fresh(x, weight), K)


def optimizer_hooks():
    from torch.optim.optimizer import _global_optimizer_post_hooks

    return _global_optimizer_post_hooks


# ---------------------------------------------------------------- every way to change a weight
def _step(make):
    def change(weight):
        weight.grad = torch.ones_like(weight)
        make([weight]).step()

    return change


def _lbfgs(weight):
    def loss():
        weight.grad = torch.ones_like(weight)
        return weight.sum()

    torch.optim.LBFGS([weight]).step(loss)


def _ungraded(change):
    def changed(weight):
        with torch.no_grad():
            change(weight)

    return changed


def _inference(weight):
    with torch.inference_mode():
        weight.mul_(2)


def _load(weight, **options):
    module = nn.Linear(K, N, bias=False, device=weight.device)
    module.weight = weight
    buffer = io.BytesIO()
    torch.save({"weight": torch.randn(N, K)}, buffer)
    buffer.seek(0)
    module.load_state_dict(torch.load(buffer), **options)
    assert options or module.weight is weight


def _set_elsewhere(weight):
    weight.set_(torch.randn_like(weight))


def _swap_memory(weight):
    weight.data = torch.randn_like(weight)


def _there_and_back(weight):
    """Other memory, and perhaps the old addresses again, with other values."""
    version = weight._version
    for _ in range(20):
        weight.data = torch.randn(3, 3, device=weight.device)
        weight.data = torch.randn(N, K, device=weight.device)
    assert weight._version == version


def _resize_storage(weight):
    storage, size = weight.untyped_storage(), weight.untyped_storage().nbytes()
    storage.resize_(0)
    storage.resize_(size)
    weight.copy_(torch.randn(N, K))


def _by_autograd(weight):
    """In place in a recorded graph, of a view."""
    with torch.enable_grad():
        (weight.detach()[3:7] * 1).sum()
    weight[3:7].add_(1)


SGD, Adam, AdamW, Adagrad = torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW, torch.optim.Adagrad
CHANGES = {
    "add_": _ungraded(lambda w: w.add_(1)),
    "copy_": _ungraded(lambda w: w.copy_(torch.randn(N, K))),
    "out=": _ungraded(lambda w: torch.mul(w, 3, out=w)),
    "item": _ungraded(lambda w: w.__setitem__((2, 5), 100.0)),
    "slice": _ungraded(lambda w: w[::2].zero_()),
    "transposed": _ungraded(lambda w: w.mT.mul_(2)),
    "flat view": _ungraded(lambda w: w.view(-1)[7:].neg_()),
    "as_strided": _ungraded(lambda w: w.as_strided((4,), (7,)).fill_(50)),
    "diagonal": _ungraded(lambda w: w.diagonal().fill_(9)),
    "mask": _ungraded(lambda w: w.masked_fill_(w > 0, 5)),
    "index": _ungraded(lambda w: w.index_copy_(0, torch.arange(3).to(w.device), torch.ones(3, K).to(w.device))),
    "detached": lambda w: w.detach().mul_(2),
    "product into it": _ungraded(lambda w: torch.mm(torch.ones_like(w), torch.full((K, K), 1 / K).to(w.device), out=w)),
    "addmm_": _ungraded(lambda w: w.addmm_(torch.ones(N, 4).to(w.device), torch.ones(4, K).to(w.device))),
    "init": lambda w: nn.init.kaiming_uniform_(w),
    "foreach": _ungraded(lambda w: torch._foreach_mul_([w], 2.0)),
    "clip": _ungraded(lambda w: w.clamp_(max=0)),
    "inference": _inference,
    "autograd": _ungraded(_by_autograd),
    "SGD": _step(lambda p: SGD(p, lr=1.0, foreach=False)),
    "SGD foreach": _step(lambda p: SGD(p, lr=1.0, foreach=True)),
    "SGD fused": _step(lambda p: SGD(p, lr=1.0, fused=True)),
    "SGD momentum fused": _step(lambda p: SGD(p, lr=1.0, momentum=0.9, fused=True)),
    "Adam": _step(lambda p: Adam(p, lr=1.0, foreach=False)),
    "Adam foreach": _step(lambda p: Adam(p, lr=1.0, foreach=True)),
    "Adam fused": _step(lambda p: Adam(p, lr=1.0, fused=True)),
    "AdamW fused": _step(lambda p: AdamW(p, lr=1.0, fused=True)),
    "Adagrad": _step(lambda p: Adagrad(p, lr=1.0)),
    "RMSprop": _step(lambda p: torch.optim.RMSprop(p, lr=1.0)),
    "LBFGS": _lbfgs,
    "load_state_dict": _load,
    "set_": _ungraded(_set_elsewhere),
    "other memory": _swap_memory,
    "other memory again and again": _there_and_back,
    "resized storage": _ungraded(_resize_storage),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
@pytest.mark.parametrize("inside", [True, False], ids=["inside", "outside"])
def test_what_changes_a_weight_is_seen(change, inside, weight, x):
    mode = keeping(weight)
    for turn in range(3):
        before = weight.detach().clone()
        with mode as products:
            warm(x, weight)
            assert products._weights.nbytes > 0
            if inside:
                change(weight)
                warm(x, weight)
        if not inside:
            change(weight)
            with mode:
                warm(x, weight)
        assert turn > 0 or not torch.equal(weight, before)


def test_a_weight_is_kept_from_its_second_product_on(weight, x):
    with keeping(weight) as mode:
        functional.linear(x, weight)
        assert kept(mode) == 0
        functional.linear(x, weight)
        some = kept(mode)
        assert some >= 4 * N * K
        for _ in range(3):
            functional.linear(x[:7], weight)  # one split for all products with it
        assert kept(mode) == some
        with torch.no_grad():
            weight.add_(1)
        functional.linear(x, weight)
        assert kept(mode) == 0  # nor after it has changed


def test_what_a_counter_cannot_see_is_why_it_is_asked_for(weight, x):
    """And shows that what is kept is what counts."""
    with keeping(weight):
        warm(x, weight)
        before = weight.detach().clone()
        weight.data.mul_(2)
        assert close(functional.linear(x, weight), fresh(x, before), K)
    with everywhere():
        warm(x, weight)


def test_tensors_that_share_its_memory_have_its_values(weight, x):
    with keeping(weight), torch.no_grad():
        warm(x, weight)
        for _ in range(3):
            for same in (weight.data, weight.detach(), weight.view(N, K), weight.mT.mT, weight.clone()):
                warm(x, same)
            for part in (weight[: N // 2], weight[3:9], weight[:, : K // 2], weight[::2], weight[:, ::3]):
                warm(x[:, : part.shape[1]], part)
            weight.add_(1)  # which the counters of weight.data do not see
    other = nn.Parameter(weight.data)  # with a counter of its own
    with keeping(weight, other), torch.no_grad():
        for each in (weight, other):
            warm(x, weight)
            each.mul_(2)
            warm(x, weight)
            warm(x, other)


def test_forward_and_backward(normal, device):
    model = nn.Sequential(nn.Linear(K, H), nn.Tanh(), nn.Linear(H, N)).to(device)
    exact = copy.deepcopy(model).double()
    optimizers = [torch.optim.SGD(m.parameters(), lr=0.01, fused=True) for m in (model, exact)]
    x = normal(M, K)
    with everywhere(keep_weights=model) as products:
        for _ in range(4):
            for _ in range(3):  # gradients of several batches are added: the weights stay meanwhile
                model(x).square().mean().backward()
                exact(x.double()).square().mean().backward()
            assert kept(products) >= 4 * H * (K + 2 * N)  # one of them in both directions
            for p, q in zip(model.parameters(), exact.parameters(), strict=True):
                assert close(p.grad, q.grad, K)
            for optimizer in optimizers:
                optimizer.step()
                optimizer.zero_grad()


def test_weights_that_a_step_uses_once_are_not_kept(normal, device):
    model = nn.Linear(K, N).to(device)
    optimizer = torch.optim.Adam(model.parameters(), fused=True)
    with everywhere(keep_weights=model) as products:
        for _ in range(3):
            model(normal(M, K)).sum().backward()
            optimizer.step()
            assert kept(products) == 0


def test_compiled_models(normal, device):
    model = nn.Sequential(nn.Linear(K, H), nn.Tanh(), nn.Linear(H, N)).to(device)
    compiled = torch.compile(model, backend="aot_eager")
    x = normal(M, K)
    mode = everywhere(keep_weights=model)
    with torch.no_grad():
        for _ in range(3):
            want = copy.deepcopy(model).double()(x.double())
            with mode as products:
                for _ in range(3):
                    assert close(compiled(x), want, K)
                assert kept(products) >= 4 * H * (K + N)
            for p in model.parameters():
                p.mul_(1.5)


def test_compiled_optimizers(weight, x):
    optimizer = torch.optim.Adam([weight], lr=0.1, foreach=True)

    @torch.compile(backend="aot_eager")
    def step():
        optimizer.step()

    with keeping(weight):
        for _ in range(3):
            warm(x, weight)
            weight.grad = torch.ones_like(weight)
            step()
        warm(x, weight)


def test_checkpoints(normal, device):
    model = nn.Sequential(nn.Linear(K, H), nn.Linear(H, N)).to(device)
    x = normal(M, K, requires_grad=True)
    with everywhere(keep_weights=model) as products:
        y = torch.utils.checkpoint.checkpoint(model, x, use_reentrant=False)
        y.sum().backward()
        assert kept(products) > 0  # the first half of the forward pass runs twice
    want = torch.ones(M, N, device=device).double() @ model[1].weight.double() @ model[0].weight.double()
    assert close(x.grad, want, K)


# ---------------------------------------------------------------- which are kept
def test_replaced_parameters_are_known_when_the_mode_is_entered(normal, device):
    model = nn.Linear(K, N, bias=False).to(device)
    x = normal(M, K)
    mode = everywhere(keep_weights=model)
    with mode as products, torch.no_grad():
        warm(x, model.weight)
        model.load_state_dict({"weight": normal(N, K)}, assign=True)
        warm(x, model.weight)
    with mode as products, torch.no_grad():
        warm(x, model.weight)
        assert 4 * N * K <= kept(products) < 8 * N * K


def test_tensors_without_a_counter_and_others_are_never_kept(normal, x):
    with torch.inference_mode():
        weight = normal(N, K)
    with keeping(weight) as products, torch.inference_mode():
        for _ in range(3):
            warm(x, weight)
            weight.add_(1)
        assert kept(products) == 0
    named, other = normal(N, K), normal(N, K)
    with keeping(named, normal(N, K, dtype=torch.float64), torch.empty(0, 4), torch.eye(4).to_sparse()) as products:
        warm(x, other)
        assert kept(products) == 0
        warm(x, named)
        assert kept(products) > 0


def test_vectors_stacks_and_a_weight_times_itself(normal, weight):
    square = nn.Parameter(normal(K, K))
    with keeping(weight, square), torch.no_grad():
        for _ in range(3):
            for want, got in (
                (square.double() @ square.double(), square @ square),
                (square.double() @ square.double().mT, square @ square.mT),
                (weight.double() @ square.double(), weight @ square),
                (weight.double() @ square[0].double(), weight @ square[0]),
                (weight.expand(3, N, K).double() @ square.double(), weight.expand(3, N, K) @ square.expand(3, K, K)),
            ):
                assert close(got, want, K)
            square.mul_(0.5)
            weight.add_(1)


def test_every_order(normal, device):
    """A factor on either side, transposed or not, and results in column order."""
    weight, other = nn.Parameter(normal(K, K)), normal(K, K)
    out = torch.empty(K, K, device=device)
    with keeping(weight), torch.no_grad():
        for _ in range(4):
            for w in (weight, weight.mT):
                for y in (other, other.mT):
                    for a, b in ((w, y), (y, w)):
                        want = a.double() @ b.double()
                        assert close(a @ b, want, K)
                        assert close(torch.mm(a, b, out=out), want, K)
                        assert close(torch.mm(a, b, out=out.mT), want, K)
                        assert close(torch.addmm(other, a, b, beta=2, alpha=0.5), 2 * other + 0.5 * want, K)
            weight.add_(1)


# ---------------------------------------------------------------- memory
def test_the_bound(normal, x):
    weights = [nn.Parameter(normal(N, K)) for _ in range(5)]
    with keeping(*weights) as products:
        warm(x, weights[0])
        one = kept(products)
    limit = 3 * one
    with keeping(*weights, keep_bytes=limit) as products:
        for _ in range(3):
            for weight in weights:
                warm(x, weight)
                assert 0 < kept(products) <= limit
        assert kept(products) == limit
    for limit in (0, one - 1):
        with keeping(*weights, keep_bytes=limit) as products:
            warm(x, weights[0])
            assert kept(products) == 0


def test_the_least_recently_used_goes_first(normal, x):
    weights = [nn.Parameter(normal(N, K)) for _ in range(3)]
    with keeping(*weights) as products:
        warm(x, weights[0])
        one = kept(products)
    with keeping(*weights, keep_bytes=2 * one):
        warm(x, weights[0])
        warm(x, weights[1])
        warm(x, weights[0])
        warm(x, weights[2])
        for weight in weights:  # what is stale now was kept
            weight.data.mul_(2)
        assert not close(functional.linear(x, weights[0]), fresh(x, weights[0]), K)
        assert close(functional.linear(x, weights[1]), fresh(x, weights[1]), K)


def test_it_goes_with_the_mode(weight, x):
    mode = keeping(weight)
    for _ in range(2):
        with mode as products:
            warm(x, weight)
            weights = products._weights
    assert weights.nbytes > 0
    hooks = len(optimizer_hooks())
    del mode, products, weights
    gc.collect()
    assert len(optimizer_hooks()) == hooks - 1


def test_enable(weight, x):
    products = flt.enable(keep_weights=[weight])
    products._anywhere = True
    try:
        warm(x, weight)
        assert kept(products) > 0
    finally:
        flt.disable()


def test_decorated_functions_keep_them_from_call_to_call(weight, x):
    mode = keeping(weight)
    found = []

    @mode
    def call():
        warm(x, weight)
        found.append(kept(flt._mode._current()))

    call()
    call()
    assert found[0] > 0 and found[0] == found[1]


@pytest.mark.gpu
def test_memory_info_and_trim(device, normal):
    n = 1024
    weight, x = nn.Parameter(normal(n, n)), normal(n, n)
    fl.cuda.trim()
    before = fl.cuda.memory_info()
    assert before["splits"] == 0
    with flt.use(keep_weights=[weight]) as products:
        for _ in range(3):
            got = functional.linear(x, weight)
            assert torch.equal(got, fl.matmul(x, weight.detach().mT))
            info = fl.cuda.memory_info()
            if info["splits"]:
                assert info["used"] - before["used"] >= info["splits"] == kept(products)
                assert 4 * n * n <= info["splits"] <= 5 * n * n
                fl.cuda.trim()
                assert fl.cuda.memory_info()["splits"] == 0
        functional.linear(x, weight)
        assert fl.cuda.memory_info()["splits"] > 0
    del products
    gc.collect()
    assert fl.cuda.memory_info()["splits"] == 0
    fl.cuda.trim()
    assert fl.cuda.memory_info()["used"] == before["used"]


@pytest.mark.gpu
def test_the_bits_are_those_of_a_fresh_split(device, normal):
    for m, n, k in ((700, 520, 1030), (1536, 1500, 264), (4096, 4096, 1024), (128, 3072, 1024)):
        weight, row = nn.Parameter(normal(n, k)), normal(n)
        with keeping(weight) as products, torch.no_grad():
            for rows in (m, m // 2 + 9, m):
                x, grad = normal(rows, k), normal(rows, n)
                for _ in range(3):
                    assert torch.equal(functional.linear(x, weight, row), fl.sgemm(x, weight.detach().mT, row, beta=1))
                    assert torch.equal(grad @ weight, fl.matmul(grad, weight.detach()))
            assert kept(products) > 0 or m < 4096  # the rows that few products take may not split


@pytest.mark.gpu
def test_streams_and_captures(device, normal):
    n = 1024
    weight, x = nn.Parameter(normal(n, n)), normal(n, n)
    streams = [torch.cuda.Stream() for _ in range(3)]
    with flt.use(keep_weights=[weight]) as products, torch.no_grad():
        for turn in range(4):
            torch.cuda.synchronize()
            got = []
            for i in range(9):
                with torch.cuda.stream(streams[(i + turn) % 3]):
                    got.append(functional.linear(x, weight))
            torch.cuda.synchronize()
            assert all(torch.equal(y, fl.matmul(x, weight.mT)) for y in got)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                y = functional.linear(x, weight)
            for _ in range(2):  # a graph has nothing of what is kept in it
                weight.data.mul_(2)
                graph.replay()
                assert torch.equal(y, fl.matmul(x, weight.mT))
            weight.add_(0)
        assert kept(products) > 0


def test_threads(normal, device):
    """Each with a weight of its own and one that all share, whose values change between their turns."""
    shared = nn.Parameter(normal(N, K))
    own = [nn.Parameter(normal(N, K)) for _ in range(4)]
    x = normal(M, K)
    mode_weights = keeping(shared, *own, keep_bytes=6 * N * K * 4)
    barrier = threading.Barrier(4)

    def work(i):
        with mode_weights._recreate_cm(), torch.no_grad():
            for turn in range(20):
                warm(x, own[i])
                own[i].mul_(0.9)
                warm(x, shared)
                barrier.wait()
                if i == turn % 4:
                    shared.add_(0.1)
                    shared.sum().item()  # the others' streams do not wait for this one
                barrier.wait()

    in_threads(work, range(4))


@pytest.mark.parametrize("bad", [3, "model", True, [3]])
def test_what_can_be_named(bad):
    with pytest.raises(TypeError, match="keep_weights must be a Module or tensors, got "):
        flt.use(keep_weights=bad)
    with pytest.raises(ValueError, match="keep_bytes"):
        flt.use(keep_weights=[], keep_bytes=-1)
    for size in ("2 GiB", 2e9, None, 0):
        flt.use(keep_weights=[], keep_bytes=size)
