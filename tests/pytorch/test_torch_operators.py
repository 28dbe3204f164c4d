"""The operators fastlinalg::mm, bmm, addmm and linear, and the functions made of them."""

from __future__ import annotations

import itertools
import re
import warnings

import pytest

from support.pytorch.mode import close, flt, torch

ops = torch.ops.fastlinalg


def _samples(normal):
    """(operator, the same in PyTorch, arguments, keywords): strides, broadcast addends, stacks and no rows at all."""
    a, b, c = normal(5, 7, requires_grad=True), normal(7, 3, requires_grad=True), normal(3, requires_grad=True)
    stacks = normal(2, 5, 7, requires_grad=True), normal(2, 3, 7, requires_grad=True)
    scaled = {"beta": 2, "alpha": 0.5}
    functional = torch.nn.functional
    return [
        (ops.mm.default, torch.mm, (a, b), {}),
        (ops.mm.default, torch.mm, (b.mT, a.mT), {}),
        (ops.bmm.default, torch.bmm, (stacks[0], stacks[1].mT), {}),
        (ops.addmm.default, torch.addmm, (c, a, b), scaled),
        (ops.addmm.default, torch.addmm, (normal(5, 1, requires_grad=True), a, b), {}),
        (ops.addmm.default, torch.addmm, (normal(5, 3, requires_grad=True), a, b), {"beta": 0}),
        (ops.linear.default, functional.linear, (a, b.mT, c), {}),
        (ops.linear.default, functional.linear, (stacks[0], stacks[1][0]), {}),
        (ops.linear.default, functional.linear, (normal(7, requires_grad=True), b.mT, c), {}),
    ]


def _double(x):
    return x.detach().double().requires_grad_(x.requires_grad)


def test_values_and_gradients_are_those_in_float64(normal):
    for op, reference, given, options in _samples(normal):
        given = tuple(x.detach().requires_grad_() for x in given)
        exact = tuple(_double(x) for x in given)
        got, want = op(*given, **options), reference(*exact, **options)
        assert got.shape == want.shape and close(got, want, 7), op
        weights = normal(*got.shape)
        gradients = torch.autograd.grad((got * weights).sum(), given)
        exact_gradients = torch.autograd.grad((want * weights.double()).sum(), exact)
        for got_grad, want_grad in zip(gradients, exact_gradients, strict=True):
            assert got_grad.shape == want_grad.shape and close(got_grad, want_grad, 7), op


@pytest.mark.parametrize("precision", ["accurate", "strict"])
def test_opcheck(normal, precision):
    for op, _, given, options in _samples(normal):
        torch.library.opcheck(op, given, {**options, "precision": precision})


def test_gradcheck(normal):
    """A product is linear in each operand: a large step has no error but that of rounding."""
    steps = {"eps": 1e-1, "atol": 2e-3, "rtol": 2e-3}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it expects float64
        for op, _, given, options in _samples(normal):
            tensors = tuple(x.detach().requires_grad_() for x in given)
            call = lambda *x, op=op, options=options: op(*x, **options)  # noqa: E731
            assert torch.autograd.gradcheck(call, tensors, **steps)
            assert torch.autograd.gradgradcheck(call, tensors, **steps)


def test_derivatives_have_the_precision_of_the_call(normal, monkeypatch):
    seen = []
    core = flt._operators._core
    for name in ("tensor_product", "tensor_products"):
        product = getattr(core, name)

        def seeing(*given, product=product):
            seen.extend(x for x in given if isinstance(x, str))
            return product(*given)

        monkeypatch.setattr(core, name, seeing)
    x, w = normal(4, 5, 7, requires_grad=True), normal(3, 7, requires_grad=True)
    flt.linear(x, w, precision="strict").sum().backward()
    flt.matmul(x, w.mT, precision="strict").sum().backward()
    assert seen == ["strict"] * 6
    sum(y.sum() for y in flt.grouped_matmul([x[0], x[1]], [w.mT, w.mT], precision="strict")).backward()
    assert seen == ["strict"] * 8
    _of_dual_numbers(lambda a, b: flt.matmul(a, b, precision="strict"), [x, w.mT], [x, None])
    assert seen == ["strict"] * 10


# ---------------------------------------------------------------- other types
OTHER_TYPES = (torch.float16, torch.bfloat16, torch.float64, torch.int32)
SHAPES_OF_PRODUCTS = [((5, 7), (7, 3)), ((7,), (7, 3)), ((5, 7), (7,)), ((2, 5, 7), (7, 3)), ((2, 5, 7), (2, 7, 3)),
                      ((3, 300), (300, 40)), ((70, 300), (300, 40))]  # fmt: skip


def _of_type(x, dtype):
    x = (x.detach() * 8).to(dtype)
    return x.requires_grad_(dtype.is_floating_point)


def _with_gradients(product, *given):
    y = product(*given)
    given = [x for x in given if x.requires_grad]
    return [y, *(torch.autograd.grad(y.square().sum(), given) if given else ())]


@pytest.mark.parametrize("dtype", OTHER_TYPES, ids=str)
def test_other_types_have_the_values_and_gradients_of_converting_first(normal, dtype):
    agreed = {"dtype": torch.float32}
    for shapes, precision in itertools.product(SHAPES_OF_PRODUCTS, ("accurate", "reproducible")):
        a, b = (normal(*shape) for shape in shapes)
        for x, y in ((_of_type(a, dtype), b), (a.requires_grad_(), _of_type(b, dtype)), (_of_type(a, dtype),) * 2):
            x, y = (x, y) if x is not y else (x, _of_type(b, dtype))
            got = _with_gradients(lambda x, y, p=precision: flt.matmul(x, y, precision=p, **agreed), x, y)
            want = _with_gradients(lambda x, y, p=precision: flt.matmul(x.float(), y.float(), precision=p), x, y)
            for one, other in zip(got, want, strict=True):
                assert one.dtype == other.dtype and torch.equal(one, other), (shapes, x.dtype, y.dtype, precision)
    x, weight, bias = normal(4, 5, 7, requires_grad=True), _of_type(normal(3, 7), dtype), _of_type(normal(3), dtype)
    for last in (), (bias,), (bias.detach().float(),):
        got = _with_gradients(lambda *given: flt.linear(*given, **agreed), x, weight, *last)
        want = _with_gradients(lambda *given: flt.linear(*(y.float() for y in given)), x, weight, *last)
        assert all(one.dtype == other.dtype and torch.equal(one, other) for one, other in zip(got, want, strict=True))


def test_16_bits_on_the_cpu_are_read_as_they_lie(monkeypatch):
    seen = []
    core = flt._operators._core
    product = core.tensor_product
    monkeypatch.setattr(core, "tensor_product", lambda *given: seen.append([given[0], given[1]]) or product(*given))
    x, weight = torch.randn(4, 7, requires_grad=True), torch.randn(3, 7).bfloat16().requires_grad_()
    flt.linear(x, weight, torch.randn(3), dtype=torch.float32).sum().backward()
    types = [[y.dtype for y in pair] for pair in seen]
    full, brain = torch.float32, torch.bfloat16
    assert types == [[full, brain], [full, brain], [full, full]] and seen[0][1].data_ptr() == weight.data_ptr()


def test_other_types_are_transformed_and_compiled(normal):
    def loss(x, w):
        return flt.linear(x, w, dtype=torch.float32).square().sum()

    x, w = normal(4, 5, 7), normal(3, 7).bfloat16()
    each = torch.stack([torch.func.grad(loss)(one, w) for one in x])
    assert torch.allclose(torch.vmap(torch.func.grad(loss), (0, None))(x, w), each, rtol=1e-5, atol=1e-4)
    assert torch.allclose(torch.compile(loss, fullgraph=True)(x[0], w), loss(x[0], w), rtol=1e-5)


def test_other_types_need_consent(normal):
    a, b = normal(5, 7), normal(7, 3).bfloat16()
    with pytest.raises(TypeError, match=r"b must have .* b\.to\(torch\.float32\), or dtype=torch\.float32 to have it"):
        flt.matmul(a, b)
    with pytest.raises(TypeError, match=r"linear: bias must have dtype float32, got torch\.bfloat16.*, or dtype="):
        flt.linear(a, a, b[0, :1])
    with pytest.raises(TypeError, match=r"member 0: b must .* use b\.to\(torch\.float32\)$"):
        flt.grouped_matmul([a[0]], [b])
    with pytest.raises(TypeError, match=r"b must have dtype float32, got torch\.complex64.*use b\.real\.to"):
        flt.matmul(a, b.to(torch.complex64), dtype=torch.float32)
    with pytest.raises(TypeError, match=r"linear: bias must have dtype float32, got torch\.complex64.*use bias\.real"):
        flt.linear(a.detach().requires_grad_(), a, a[0, :5].to(torch.complex64), dtype=torch.float32)
    with pytest.raises(TypeError, match=r"matmul: dtype must be None or torch\.float32, .* got torch\.bfloat16"):
        flt.matmul(a, b, dtype=torch.bfloat16)
    with pytest.raises(ValueError, match=r"matmul: operands with shapes \(5, 7\) and \(3, 7\) do not match"):
        flt.matmul(a, b.mT, dtype=torch.float32)


# ---------------------------------------------------------------- lists
LISTS = [((4, 5), (5, 3)), ((1, 5), (5, 1)), ((3, 0), (0, 2)), ((0, 5), (5, 2)), ((5,), (5, 3)), ((2, 4, 5), (5, 3)),
         ((70, 40), (40, 90)), ((4, 5), (5,))]  # fmt: skip


def _lists(normal, **options):
    return [normal(*a, **options) for a, _ in LISTS], [normal(*b, **options) for _, b in LISTS]


@pytest.mark.parametrize("precision", ["accurate", "strict", "reproducible"])
def test_lists_have_the_values_and_gradients_of_each_product(normal, precision):
    a, b = _lists(normal, requires_grad=True)
    a[0], b[6] = normal(5, 4, requires_grad=True).mT, b[6].detach()  # no leaf, and no gradient
    got = flt.grouped_matmul(iter(a), iter(b), precision=precision)
    want = [flt.matmul(x, y, precision=precision) for x, y in zip(a, b, strict=True)]
    assert all(torch.equal(x, y) for x, y in zip(got, want, strict=True))
    with torch.no_grad():
        without = flt.grouped_matmul(a, b, precision=precision)
    assert all(torch.equal(x, y) and not x.requires_grad for x, y in zip(without, want, strict=True))
    used = slice(0, len(LISTS), 2)  # of the others there is no gradient
    given = [x for x in (*a, *b) if x.requires_grad]
    sums = [sum(x.square().sum() for x in products[used]) for products in (got, want)]
    gradients = [torch.autograd.grad(x, given, allow_unused=True) for x in sums]
    for x, y in zip(*gradients, strict=True):
        assert (x is None) == (y is None) and (x is None or torch.equal(x, y))


def test_lists_have_second_gradients(normal):
    def product(*given):
        return tuple(flt.grouped_matmul(given[:2], given[2:]))

    given = [normal(*shape, requires_grad=True) for shape in ((3, 4), (2, 5), (4, 2), (5, 3))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert torch.autograd.gradgradcheck(product, given, eps=1e-1, atol=2e-3, rtol=2e-3)


def test_lists_are_transformed_and_compiled(normal):
    def product(x, y):
        return sum(p.square().sum() for p in flt.grouped_matmul([x, x[:2]], [y, y]))

    a, b = normal(3, 5, 7), normal(7, 4)
    each = torch.stack([torch.func.grad(product)(x, b) for x in a])
    assert torch.allclose(torch.vmap(torch.func.grad(product), (0, None))(a, b), each, rtol=1e-5, atol=1e-4)
    assert torch.allclose(torch.compile(product, fullgraph=True)(a[0], b), product(a[0], b), rtol=1e-5)


def test_lists_name_the_product_that_is_wrong(normal):
    a, b = [normal(2, 3), normal(2, 3)], [normal(3, 4), normal(4, 3)]
    with pytest.raises(ValueError, match=r"grouped_matmul, member 1: operands with shapes \(2, 3\) and \(4, 3\)"):
        flt.grouped_matmul(a, b)
    with pytest.raises(ValueError, match="a has 2 tensors and b has 1"):
        flt.grouped_matmul(a, b[:1])
    with pytest.raises(TypeError, match="grouped_matmul, member 1: b must have dtype float32"):
        flt.grouped_matmul(a, [b[0], b[0].double()])
    assert flt.grouped_matmul([], []) == []


# ---------------------------------------------------------------- transforms
def _mapped(x, dim):
    return x if dim is None else torch.stack([x, x * 2, x - 1], dim)


@pytest.mark.parametrize("dims", [*itertools.product((None, 0, 1, 2), repeat=2)][1:])
def test_vmap_over_products(normal, dims):
    a, b = (_mapped(x, dim) for x, dim in zip((normal(5, 7), normal(7, 4)), dims, strict=True))
    assert close(torch.vmap(flt.matmul, dims)(a, b), torch.vmap(torch.matmul, dims)(a.double(), b.double()), 7)


@pytest.mark.parametrize("dims", [*itertools.product((None, 0, 1), repeat=3)][1:])
def test_vmap_over_sums(normal, dims):
    for call, reference, operands in (
        (flt.linear, torch.nn.functional.linear, (normal(5, 7), normal(4, 7), normal(4))),
        (flt.linear, lambda x, w, bias: x @ w.mT + bias, (normal(3, 7), normal(4, 7), normal(1)[0])),
        (ops.addmm, torch.addmm, (normal(4), normal(5, 7), normal(7, 4))),
    ):
        dims = tuple(dim and min(dim, x.ndim) for x, dim in zip(operands, dims, strict=True))
        given = [_mapped(x, dim) for x, dim in zip(operands, dims, strict=True)]
        assert close(torch.vmap(call, dims)(*given), torch.vmap(reference, dims)(*(x.double() for x in given)), 7)


def test_vmap_over_stacks(normal):
    a, b = normal(3, 2, 5, 7), normal(2, 7, 4)
    assert close(torch.vmap(ops.bmm, (0, None))(a, b), torch.matmul(a.double(), b.double()), 7)


def _of_dual_numbers(call, given, tangents):
    forward = torch.autograd.forward_ad
    with forward.dual_level():
        pairs = zip(given, tangents, strict=True)
        return forward.unpack_dual(call(*(x if t is None else forward.make_dual(x, t) for x, t in pairs))).tangent


def _of_a_transform(call, given, tangents):
    which = [i for i, t in enumerate(tangents) if t is not None]

    def of_these(*some):
        return call(*(some[which.index(i)] if i in which else x for i, x in enumerate(given)))

    return torch.func.jvp(of_these, tuple(given[i] for i in which), tuple(tangents[i] for i in which))[1]


def test_tangents(normal):
    """Of each operand alone, and of all."""
    for op, reference, given, options in _samples(normal):
        tangents = [normal(*x.shape) for x in given]
        alone = ([t if i == j else None for j, t in enumerate(tangents)] for i in range(len(given)))
        for wanted, tangent_of in itertools.product([*alone, tangents], (_of_dual_numbers, _of_a_transform)):
            exact = [x.detach().double() for x in given], [None if t is None else t.double() for t in wanted]
            want = tangent_of(lambda *x, f=reference, o=options: f(*x, **o), *exact)
            assert close(tangent_of(lambda *x, f=op, o=options: f(*x, **o), given, wanted), want, 14), op


class _NoGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        return None


def test_no_gradient_of_a_result(normal):
    x = normal(3, 3, requires_grad=True)
    for op in (ops.mm, flt.matmul):
        (got,) = torch.autograd.grad(_NoGradient.apply(op(x, x)).sum() + x.sum(), x)
        assert torch.equal(got, torch.ones_like(x))


def _along(f, direction):
    return lambda x: torch.func.jvp(f, (x,), (direction.to(x.dtype),))[1]


def _compiled(f):
    torch.compiler.reset()
    return torch.compile(f, backend="aot_eager", fullgraph=True)


@pytest.mark.parametrize("op", ["mm", "bmm", "addmm", "linear", "flt.matmul", "flt.linear", "flt.grouped_matmul"])
def test_derivatives_of_functions(normal, op):
    """Of both modes, of derivatives, and of what is mapped and compiled."""
    func, x, y, stack = torch.func, normal(4, 4), normal(4, 4), normal(2, 4, 4)
    product = {
        "bmm": lambda a, b: ops.bmm(a[None], b[None])[0],
        "addmm": lambda a, b: ops.addmm(b, a, b, beta=2, alpha=3),
        "flt.matmul": flt.matmul,
        "flt.linear": lambda a, b: flt.linear(a, b, b[0]),
        "flt.grouped_matmul": lambda a, b: flt.grouped_matmul([a], [b])[0],
    }.get(op) or getattr(ops, op)
    reference = {"addmm": lambda a, b: 3 * a @ b + 2 * b, "linear": lambda a, b: a @ b.mT,
                 "flt.linear": lambda a, b: a @ b.mT + b[0]}.get(op, torch.matmul)  # fmt: skip
    for given, transform in (
        (x, func.grad),
        (x, func.hessian),
        (x, lambda f: func.jacrev(func.jacrev(f))),
        (x, lambda f: _along(_along(f, y), x)),
        (x, lambda f: func.grad(_along(f, y))),
        (x, lambda f: lambda a: torch.autograd.functional.hessian(f, a, vectorize=True)),  # by a vmap of its own
        (stack, lambda f: func.vmap(func.grad(f))),
        (stack, lambda f: func.vmap(_along(f, y))),
        (stack, lambda f: _along(func.vmap(f), stack)),
        (x, lambda f: _compiled(_along(f, y))),
        (x, lambda f: _compiled(lambda a: _of_dual_numbers(f, [a], [y.to(a.dtype)]))),
        (x, lambda f: _compiled(func.grad(f))),
    ):
        got, want = (
            transform(lambda a, p=p: p(p(a, y.to(a.dtype)), a).square().sum())(z)
            for p, z in ((product, given), (reference, given.double()))
        )
        assert close(got / want.abs().max(), want / want.abs().max(), 14), op


@pytest.mark.parametrize("dynamic", [False, True])
def test_compiles_without_a_graph_break(normal, dynamic):
    def function(x, w, v):
        return (flt.matmul(flt.linear(x, w, v).relu(), w, precision="strict") @ w.mT).square().sum()

    operands = normal(4, 5, 7), normal(3, 7), normal(3)
    compiled = torch.compile(function, fullgraph=True, dynamic=dynamic)
    for rows in (4, 3, 2):
        given = [x.clone().requires_grad_() for x in (operands[0][:rows], *operands[1:])]
        again = [x.detach().requires_grad_() for x in given]
        got, want = compiled(*given), function(*again)
        assert torch.allclose(got, want, rtol=1e-5)
        for x, y in zip(torch.autograd.grad(got, given), torch.autograd.grad(want, again), strict=True):
            assert torch.allclose(x, y, rtol=1e-4, atol=1e-3)


# ---------------------------------------------------------------- what is taken
SHAPES = [
    ((5,), (5,)), ((5,), (5, 3)), ((4, 5), (5,)), ((2, 4, 5), (5,)), ((5,), (2, 5, 3)), ((4, 5), (5, 3)),
    ((2, 4, 5), (5, 3)), ((4, 5), (2, 5, 3)), ((2, 1, 4, 5), (3, 5, 6)), ((3, 4, 5), (3, 5, 6)), ((0, 4, 5), (0, 5, 6)),
    ((4, 0), (0, 3)), ((0, 5), (5, 3)), ((2, 1, 1, 5), (1, 3, 5, 1)),
]  # fmt: skip


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_matmul_has_the_shapes_of_torch(normal, shapes):
    a, b = normal(*shapes[0]), normal(*shapes[1])
    got, want = flt.matmul(a, b), torch.matmul(a.double(), b.double())
    assert got.shape == want.shape and close(got, want, 5)


def test_no_elements_in_16_bits():
    """Which have no address; those of `b`, once for each product, have a stride of 0 as what is repeated has."""
    a = torch.empty_strided((0, 2, 2), (1, 0, 0), dtype=torch.float16)  # interleaved, so both are converted
    b = torch.zeros(1, 2, 1, dtype=torch.float16)
    assert flt.matmul(a, b, dtype=torch.float32).shape == (0, 2, 1)


def test_all_rows_are_one_product(normal):
    x = normal(3, 4, 5)
    layouts = {
        "as they are": x,
        "each second": x[:, ::2],
        "not evenly spaced": x[:, 1:],
        "exchanged": x.transpose(0, 1),
        "columns": normal(5, 4).mT,
        "backwards in k": normal(5, 3, 4).permute(1, 2, 0),
        "repeated": x[:1].expand(6, 4, 5),
        "repeated between": x[:, :1].expand(3, 6, 5),
        "one": x[0, 0],
        "one of one": x[:1, :1],
        "none": x[:0],
        "none of each": x[:, :0],
        "no terms": x[..., :0],
        "no terms, not evenly spaced": x[:, 1:, :0],
    }
    for (name, given), out_of in itertools.product(layouts.items(), (6, 1, 0)):
        weight, bias = normal(out_of, given.shape[-1]), normal(out_of)
        for last in (None, bias):
            want = torch.nn.functional.linear(given.double(), weight.double(), None if last is None else last.double())
            got = flt.linear(given, weight, last)
            assert got.shape == want.shape and got.is_contiguous() and close(got, want, 5), (name, out_of, last)
        got = flt.matmul(given, weight.mT)
        assert got.shape == (*given.shape[:-1], out_of) and torch.equal(got, flt.linear(given, weight)), (name, out_of)


def test_negated_views(normal):
    """In memory are the negatives of their values."""
    x = torch.complex(normal(5, 5), normal(5, 5)).conj().imag
    y, bias = normal(5, 5).requires_grad_(), normal(5)
    assert x.is_neg() and close(flt.linear(y, y, x[0]), y.double() @ y.mT.double() + x[0], 5)
    for a, b in ((x, y), (y, x), (x, bias), (x[None], y), (x, x)):
        for got in (flt.matmul(a, b), flt.matmul(a.detach(), b.detach()), flt.grouped_matmul([y, a], [y, b])[1]):
            assert close(got, a.double() @ b.double(), 5)
    got, want = (torch.autograd.grad(x_by_y.sum(), y)[0] for x_by_y in (flt.matmul(x, y), x @ y))
    assert close(got, want, 5)


def test_what_is_refused(normal, device):
    a, b = normal(5, 7), normal(7, 3)
    for error, call, words in (
        (TypeError, lambda: flt.matmul(a.double(), b.double()), "float32.*float64"),
        (TypeError, lambda: flt.matmul(a, b.half()), "float32.*float16"),
        (ValueError, lambda: flt.matmul(a, b.mT), r"\(5, 7\) and \(3, 7\)"),
        (ValueError, lambda: flt.matmul(a, b[0, 0]), "at least 1 dimension"),
        (ValueError, lambda: flt.matmul(normal(2, 5, 7), normal(3, 7, 2)), "broadcast"),
        (ValueError, lambda: flt.matmul(a, b, precision="exact"), "or 'reproducible', got 'exact'"),
        (ValueError, lambda: ops.addmm(normal(4), a, b), r"c has shape \(4,\).*\(5, 3\)"),
        (ValueError, lambda: ops.mm(a[0], b), "a must have 2 dimensions"),
        (ValueError, lambda: ops.bmm(normal(2, 5, 7), normal(3, 7, 4)), "broadcast"),
    ):
        with pytest.raises(error, match=words):
            call()
    if device == "cuda":
        with pytest.raises(ValueError, match="one place"):
            flt.matmul(a, b.cpu())


def test_errors_have_the_names_and_shapes_that_were_given(normal):
    """Of the function that was called, however it turns and flattens its operands."""
    x, w, stack = normal(64, 32), normal(16, 32), normal(2, 3, 32)
    array = x.cpu().numpy()
    sizes = "axis -1 of x, of size 32, and axis -1 of weight, of size 16"
    of_linear = f"operands with shapes (64, 32) and (32, 16) do not match: the sum is over {sizes}"
    for error, call, words in (
        (ValueError, lambda: flt.linear(x, w.T), f"linear: {of_linear}; weight must have shape (n, 32)"),
        (ValueError, lambda: ops.linear(x, w.T), f"fastlinalg::linear: {of_linear}"),
        (ValueError, lambda: flt.linear(x, w, w[0]), "linear: bias must have shape (16,), got (32,)"),
        (ValueError, lambda: flt.linear(x, w, w[:, :1, None]), "linear: bias must have shape (16,), got (16, 1, 1)"),
        (ValueError, lambda: flt.linear(x, w[0]), "linear: weight must have 2 dimensions, got shape (32,)"),
        (ValueError, lambda: flt.linear(x[0, 0], w), "linear: x has no dimensions"),
        (TypeError, lambda: flt.linear(x, w.double()), "linear: weight must have dtype float32, got torch.float64"),
        (TypeError, lambda: flt.linear(x, w, w[:, 0].half()), "use bias.to(torch.float32)"),
        (TypeError, lambda: flt.linear(x, w, 3), "linear: bias must be a tensor, got int"),
        (ValueError, lambda: flt.linear(x, w.to("meta")), "linear: operands must lie in one place, got x on "),
        (ValueError, lambda: flt.matmul(stack, w), "matmul: operands with shapes (2, 3, 32) and (16, 32) do not match"),
        (ValueError, lambda: flt.matmul(x[0], w[:, 0]), "-1 of a, of size 32, and axis -1 of b, of size 16"),
        (TypeError, lambda: flt.matmul(array, array), "a must be a tensor, got ndarray; use torch.as_tensor(a)"),
        (TypeError, lambda: flt.matmul(x, [1.0]), "matmul: b must be a tensor, got list; use torch.as_tensor(b)"),
        (
            TypeError,
            lambda: flt.linear(x, w.to_sparse()),
            "linear: weight must be a strided tensor, got torch.sparse_coo",
        ),
        (
            TypeError,
            lambda: flt.matmul(torch.nested.nested_tensor([x]), w.T),
            "a must be a strided tensor, got a nested",
        ),
        (TypeError, lambda: flt.matmul(x.cfloat(), w.T), "use a.real.to(torch.float32)"),
    ):
        with pytest.raises(error, match=re.escape(words)) as caught:
            call()
        assert len(str(caught.value)) < 300 and caught.value.__suppress_context__


def test_errors_of_what_is_no_tensor_are_ours(normal):
    """torch raises anything when it asks such an object for its values."""

    class Broken:
        def __dlpack_device__(self):
            raise AssertionError("not here")

        __dlpack__ = __dlpack_device__

    for other, name in ((None, "NoneType"), (Broken(), "Broken")):
        with pytest.raises(TypeError, match=f"^matmul: b must be a tensor, got {name}$"):
            flt.matmul(normal(3, 3), other)


def test_errors_while_a_graph_is_made_have_them_too(normal):
    x, w = normal(64, 32), normal(16, 32)
    made_up = torch._subclasses.FakeTensorMode(allow_non_fake_inputs=True)
    with made_up, pytest.raises(RuntimeError, match=r"axis -1 of weight, of size 16"):
        ops.linear(x, w.T)


def test_autocast_casts_nothing(normal, device):
    a, b = normal(5, 7), normal(7, 3)
    with torch.autocast(device, dtype=torch.bfloat16):
        assert flt.matmul(a, b).dtype == torch.float32
        with pytest.raises(TypeError, match="bfloat16"):
            flt.matmul(torch.mm(a, b), b.mT)


def test_results_own_their_memory_as_those_of_torch_do(normal):
    """It can be resized, and kept for other streams."""
    result = flt.matmul(normal(5, 7), normal(7, 3))
    result.untyped_storage().resize_(0)
    assert result.untyped_storage().nbytes() == 0


def test_addends_are_not_read_without_beta(normal):
    a, b = normal(5, 7), normal(7, 3)
    nan = torch.full((5, 3), float("nan"), device=a.device)
    assert torch.equal(ops.addmm(nan, a, b, beta=0), ops.mm(a, b))


def test_nothing_else_imports_torch(python):
    python("import sys, fastlinalg, fastlinalg.cli; assert 'torch' not in sys.modules")
