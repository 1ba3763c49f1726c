"""Names of NumPy and PyTorch that dovetail accepts give what they give there."""

from __future__ import annotations

from functools import reduce
from types import ModuleType
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail.compat.aliases import ALIASES

SYNONYMS = [
    (owner, theirs, ours)
    for owner, pairs in ALIASES.items()
    for ours, names in pairs.items()
    for theirs in names.split()
]
OWNERS = {
    "": dt, "random": dt.random, "Generator": dt.random.default_rng(0),
    "Tensor": dt.ones((2, 2), device="reference"),
}  # fmt: skip

RNG = np.random.default_rng(0)
A = RNG.uniform(0.1, 0.9, (2, 3)).astype(np.float32)
B = RNG.uniform(1.1, 2.9, (2, 3)).astype(np.float32)
Q = np.array([[2.0, 1.0], [1.0, 3.0]], np.float32)
BATCH = RNG.uniform(-1, 1, (2, 3, 3)).astype(np.float32)
I = np.array([[1, 6, 5], [2, 0, 7]])  # noqa: E741
OPERANDS: dict[str, Any] = {"A": A, "B": B, "Q": Q, "S": BATCH, "I": I, "v": A[0], "w": B[0]}

# Calls with operands that both libraries accept; the name of the library stands before the dot.
NUMPY_CALLS = """
absolute(-A) | arccos(A) | arccosh(B) | arcsin(A) | arcsinh(A) | arctan(A) | arctan2(A, B)
arctanh(A) | bitwise_not(I) | invert(I) | left_shift(I, 2) | right_shift(I, 1) | conjugate(A)
concatenate((A, B)) | concatenate([A, B], 1) | cumprod(v) | cumsum(A, 1) | degrees(A)
radians(A) | true_divide(A, B) | identity(3) | hanning(5) | amax(A, 0)
amin(A, axis=1, keepdims=True) | power(B, 2) | mod(I, 3) | around(A, 1) | row_stack((A, B))
linalg.norm(A) | linalg.norm(Q, 1) | linalg.norm(A, axis=0) | linalg.norm(Q, "nuc")
linalg.norm(v, 3) | linalg.norm(Q, None, (0, 1), True) | array([[1, 2]]) | asanyarray(A)
float_power(I, 2) | sum(A, 0, None, None, True) | repeat(A, 2, axis=1) | tensordot(A, B.T, 1)
diff(A, 1, 0) | eye(3, 4, 1) | tri(2, 3, 1) | convolve(v, w, "same") | linspace(0, 1)
allclose(A, B, 9.0, 9.0) | trapezoid(v, None, 0.5) | sort(A, 0, "stable") | array_split(A, 2, 1)
vander(v, 3, True) | mean(A, 0, "float32", None, True) | isclose(A, B, 1.0)
mean(A, None, "float32") | prod(A, None, "float32") | all(A > 0, None, None, True)
histogram(A, 3, (0.0, 1.0)) | searchsorted(np.sort(v), w, "right") | all(A > 0, 0, None, True)
"""
TORCH_CALLS = """
clamp(A, 0.2, 0.5) | clamp(A, max=0.5) | clone(A) | logcumsumexp(A, 1) | div(A, B) | eq(A, B)
ge(A, B) | gt(A, B) | le(A, B) | lt(A, B) | ne(A, B) | unsqueeze(A, 1) | block_diag(A, Q)
cholesky(Q) | det(Q) | matrix_exp(Q) | inverse(Q) | matrix_power(Q, 3) | pinverse(A) | qr(A.T)
slogdet(Q) | norm(A) | norm(A, 1) | norm(A, 2, 0) | norm(A, 1, 1, True) | norm(A, p=1, dim=1)
bmm(S, S) | mm(A, B.T) | mv(A, v) | movedim(S, 0, 2) | mul(A, B) | neg(A) | ger(v, w)
permute(S, (2, 0, 1)) | sub(A, B) | swapdims(S, 0, 1) | trapz(v) | unbind(A) | unbind(A, 1)
unbind(A, dim=1) | broadcast_tensors(A, A[:1]) | tensor_split(v, 2) | tensor_split(A, 3, dim=1)
amax(A, 1) | amax(A, 1, True) | amin(A, dim=0) | gather(A, 1, I[:, :2] % 3)
gather(A, 0, I[:1] % 2) | index_select(A, 1, I[0] % 3) | masked_select(A, A > 0.5)
masked_select(A, A[0] > 0.5) | take_along_dim(A, I[0] % 6) | take_along_dim(A, I % 3, 1)
repeat_interleave(A, 2) | repeat_interleave(A, 2, 1) | repeat_interleave(A, 2, dim=0)
narrow(A, 1, 1, 2) | narrow(A, 1, -2, 1) | unflatten(A, 1, (3, 1)) | unflatten(A, 1, (-1, 1))
diag_embed(A) | diag_embed(A, 1) | diag_embed(A, -2, 0, 2) | lerp(A, B, 0.25)
addcmul(A, B, B, value=2) | addcdiv(A, B, B, value=0.5) | addmm(Q, A, B.T)
addmm(Q, A, B.T, beta=0.5, alpha=2) | addmv(v[:2], A, w, beta=0) | baddbmm(S, S, S)
float_power(A, 2) | logdet(Q) | cdist(A, B) | cdist(A, B, 1.0) | cdist(S, S, float("inf"))
chunk(A, 2, 1) | masked_fill(A, A > 0.5, 0.0) | t(A) | concatenate((A, B), 1) | is_tensor(A)
allclose(A, B, 9.0, 9.0) | sum(A, 1, True) | mean(A, 0, True) | diff(A, 1, 0)
logsumexp(A, 0, True)
"""
METHOD_CALLS = """
A.absolute() | A.clamp(0.2, 0.5) | A.mm(B.T) | S.bmm(S) | A.mv(v) | Q.inverse() | Q.det()
A.norm() | A.norm(p=1) | A.unbind(1) | A.amax(1) | A.select(1, 0) | A.narrow(1, 0, 2)
A.gather(1, I % 3) | A.view_as(B.reshape(3, 2)) | A.nelement() | A.where(A > 0.5, B)
A.lerp(B, 0.5) | A.bool() | A.short() | A.index_select(0, I[0, :1]) | A.masked_select(A > 0.5)
A.new_zeros(2) | A.new_ones((2, 1)) | A.cpu() | A.new_full((2,), 3.0) | A.new_tensor([1, 2])
A.addcmul(B, B) | Q.addmm(A, B.T) | A.is_cuda | A.arctan2(B) | A.unflatten(1, (3, 1))
A.diag_embed() | A.repeat_interleave(2, 0) | A.sum(1, True) | A.power(B)
v.outer(w) | v.ger(w) | A.argwhere()
"""


def _cases(text: str) -> list[str]:
    return [case.strip() for line in text.strip().splitlines() for case in line.split("|")]


def _plain(found: Any) -> Any:
    if isinstance(found, (tuple, list)):
        return [_plain(x) for x in found]
    return np.asarray(found.detach() if hasattr(found, "detach") else found)


def _require_equal(ours: Any, theirs: Any) -> None:
    a, b = _plain(ours), _plain(theirs)
    if isinstance(b, list):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            _require_equal(x, y)
        return
    assert a.shape == b.shape
    np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize(("owner", "theirs", "ours"), SYNONYMS)
def test_synonym_is_the_same_object_and_hidden(owner: str, theirs: str, ours: str) -> None:
    of = OWNERS[owner]
    original = reduce(getattr, ours.split("."), of)
    found = getattr(of, theirs)
    if isinstance(of, ModuleType):
        assert found is original
    else:
        assert found.__func__ is original.__func__
    assert theirs not in dir(of)


@pytest.mark.parametrize("call", _cases(NUMPY_CALLS))
@pytest.mark.filterwarnings("ignore")
def test_numpy_call_gives_the_same_result(call: str) -> None:
    expected = eval(f"np.{call}", {"np": np, **OPERANDS})
    with dt.device("reference"):
        operands = {name: dt.asarray(value) for name, value in OPERANDS.items()}
        call = call.replace("np.sort", "dt.sort")
        _require_equal(eval(f"dt.{call}", {"dt": dt, **operands}), expected)


@pytest.mark.parametrize("call", _cases(TORCH_CALLS))
@pytest.mark.filterwarnings("ignore")
def test_pytorch_call_gives_the_same_result(call: str) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")
    operands = {name: torch.asarray(value) for name, value in OPERANDS.items()}
    expected = eval(f"torch.{call}", {"torch": torch, **operands})
    with dt.device("reference"):
        operands = {name: dt.asarray(value) for name, value in OPERANDS.items()}
        _require_equal(eval(f"dt.{call}", {"dt": dt, **operands}), expected)


@pytest.mark.parametrize("call", _cases(METHOD_CALLS))
@pytest.mark.filterwarnings("ignore")
def test_method_gives_the_same_result_as_pytorch(call: str) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")
    if call == "A.power(B)":
        expected = torch.pow(torch.asarray(A), torch.asarray(B))
    else:
        expected = eval(call, {n: torch.asarray(value) for n, value in OPERANDS.items()})
    with dt.device("reference"):
        found = eval(call, {name: dt.asarray(value) for name, value in OPERANDS.items()})
    if call == "A.cpu()":  # which moves it away from the reference device
        assert found.device.type == "cpu"
    _require_equal(found, expected)


def test_gather_refuses_an_index_longer_than_the_operand() -> None:
    x = dt.ones((2, 3), device="reference")
    with pytest.raises(dt.ShapeError, match="gather: index must have 2 axes that are no longer"):
        dt.gather(x, 1, dt.zeros((3, 1), dtype=dt.int64, device="reference"))


def test_narrow_refuses_places_beyond_the_axis() -> None:
    with pytest.raises(dt.ArgumentError, match="narrow: start and length must stay within axis 0"):
        dt.narrow(dt.arange(3, device="reference"), 0, 2, 2)


def test_diag_embed_keeps_infinities_on_the_diagonal() -> None:
    x = dt.asarray([np.inf, 1.0], device="reference")
    assert dt.diag_embed(x).tolist() == [[np.inf, 0.0], [0.0, 1.0]]


def test_addmm_with_beta_0_does_not_read_the_operand() -> None:
    with dt.device("reference"):
        eye = dt.eye(2)
        assert dt.addmm(eye * np.nan, eye, eye, beta=0).tolist() == eye.tolist()


@pytest.mark.parametrize("name", ["gather", "index_select", "lerp", "addmm", "cdist", "diag_embed"])
def test_gradient_equals_pytorch(name: str) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")
    call = {
        "gather": "gather(x, 1, I % 3)", "index_select": "index_select(x, 1, I[0] % 3)",
        "lerp": "lerp(x, B, 0.25)", "addmm": "addmm(Q, x, B.T, beta=2, alpha=3)",
        "cdist": "cdist(x, B)", "diag_embed": "diag_embed(x, 1)",
    }[name]  # fmt: skip
    grads = []
    for library, scope in (("torch", {"torch": torch}), ("dt", {"dt": dt})):
        with dt.device("reference"):
            make = torch.asarray if library == "torch" else dt.asarray
            operands = {n: make(value) for n, value in OPERANDS.items()}
            x = make(A.copy()).requires_grad_()
            y = eval(f"{library}.{call}", {**scope, **operands, "x": x})
            (y * y).sum().backward()
            grads.append(x.grad)
    _require_equal(grads[1], grads[0])


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("dt.log(6.25)", np.log(np.float32(6.25))), ("dt.sin([0.0, 1.0])", np.sin([0.0, 1.0])),
        ("dt.add(1, 2)", 3), ("dt.exp(1j)", np.exp(1j)), ("dt.where(True, 1, 2)", 1),
        ("dt.float32(0.1)", np.float32(0.1)), ("dt.int32([1, 2])", [1, 2]),
        ("dt.dot([1.0, 2.0], [3.0, 4.0])", 11.0), ("dt.maximum(1, 2.5)", 2.5),
        ("dt.float16(dt.ones(2))", [1.0, 1.0]),
    ],
)  # fmt: skip
def test_numbers_and_lists_without_a_tensor_are_on_the_default_device(
    call: str, expected: Any
) -> None:
    with dt.device("reference"):
        found = eval(call)
    assert found.device.type == "reference"
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-6)


def test_dtype_that_is_called_casts() -> None:
    assert dt.int8(3).dtype is dt.int8 and dt.bool(1).item() is True


@pytest.mark.parametrize("call", ["dt.add(x, x, 3)", "x.sum(0, 3)", "x.repeat(2, 0)"])
def test_argument_without_a_meaning_raises(call: str) -> None:
    x = dt.ones((2, 2), device="reference")
    with pytest.raises(dt.ArgumentTypeError, match="expected at most 2 positional arguments"):
        eval(call, {"dt": dt, "x": x})


def test_sampler_takes_numpys_order_of_arguments() -> None:
    for name in ("normal", "uniform"):
        a, b = dt.random.default_rng(3), dt.random.default_rng(3)
        x = getattr(a, name)(1.0, 2.0, (3,))
        own = {"normal": {"mean": 1.0, "std": 2.0}, "uniform": {"low": 1.0, "high": 2.0}}[name]
        assert x.tolist() == getattr(b, name)((3,), **own).tolist()
