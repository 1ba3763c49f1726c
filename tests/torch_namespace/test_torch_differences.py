"""Calls of PyTorch in PyTorch, in `dovetail.torch` and in `dt`: each difference is a row.

`dovetail.torch` gives PyTorch's result for every row. `dt` gives the same result, another one, or
an error, by the table in which the row is.
"""

from __future__ import annotations

import warnings
from typing import Any

import dovetail as dt
import dovetail.torch as ours
import numpy as np
import pytest

# Calls that run in `dt` and mean something else there.
DIFFERS = r"""
a.max(1)
a.max(-1)[0]
a.min(0)
torch.max(a, 1)
torch.min(a, 1, True)
torch.sort(v)
a.sort(1, descending=True)
n.sort()[1]
torch.median(n)
a.median(1)
a.std()
a.std(1)
a.var()
a.var(0)
torch.std(a)
torch.var(v, 0)
a.equal(a)
torch.equal(v, v)
torch.nonzero(m)
m.nonzero()
v.repeat(2)
torch.meshgrid(torch.arange(2), torch.arange(3))
torch.autograd.grad((w * w).sum(), w)
"""
# Calls that raise an error in `dt`.
REFUSED = r"""
a.squeeze(0)
torch.squeeze(a, (0, 1))
torch.einsum(a, [0, 1], b, [0, 1])
torch.einsum(a, [..., 3], b, [..., 3], [...])
torch.index_put(v, (torch.tensor([0, 0]),), torch.tensor([1.0, 2.0]), accumulate=True)
a.clone().index_put_((torch.tensor([1]),), torch.zeros(1))
a.max(1).indices
a.max(dim=1, keepdim=True)
a.min(dim=0)[1]
a.max(b)
torch.max(a, dim=0).values
torch.max(a, b)
torch.min(a, b)
s.max(0)
torch.aminmax(a)
torch.aminmax(a, axis=0)
a.aminmax(dim=1)
a.sort(dim=0).indices
torch.msort(v)
a.median(dim=0)
a.std(dim=1, keepdim=True)
a.std(False)
a.var(dim=(0, 1))
torch.std_mean(v)
torch.var_mean(a, 1)
a.equal(v)
v.repeat(2, 1)
a.repeat(2, 1, 2)
a.flip(0, 1)
v.T
a.clamp_min(0)
torch.clamp_max(a, 1)
torch.div(n, 2, rounding_mode="floor")
torch.div(a, 2, rounding_mode="trunc")
torch.rsub(v, 1)
torch.addr(torch.zeros(4, 4), v, v)
torch.dist(v, v + 1)
torch.frac(a)
torch.fix(a)
torch.sgn(a)
torch.einsum("ij,kj->ik", [a, a])
torch.take(a, torch.tensor([0, 4]))
a.take(torch.tensor([0, 4]))
torch.cartesian_prod(torch.arange(2), torch.arange(2))
torch.combinations(n, 2)
torch.range(1, 3)
torch.FloatTensor([1, 2])
torch.LongTensor([1, 2])
torch.IntTensor([[1]])
torch.BoolTensor([1, 0])
torch.Tensor([1, 2])
torch.Tensor(2, 3).shape[1]
torch.Tensor().numel()
torch.Size((2, 3)).numel()
torch.scalar_tensor(2.0)
torch.complex(v, v)
torch.polar(v, v)
torch.view_as_real(torch.complex(v, v))
v.type()
n.type()
n.type(torch.FloatTensor)
n.type("torch.DoubleTensor")
v.clone().clamp_min_(2)
v.clone().squeeze_()
a.clone().unsqueeze_(0)
a.clone().t_()
a.clone().transpose_(0, 1)
torch.relu_(a.clone())
torch.zeros(3, 3).fill_diagonal_(2)
a.contiguous(memory_format=torch.contiguous_format)
a.is_sparse
a.get_device()
a.ndimension()
torch.select(a, 0, 1)
torch.linalg.matrix_exp(torch.zeros(2, 2))
torch.func.vmap(lambda x: x.max(0).values)(a)
torch.func.grad_and_value(lambda x: (x * x).sum())(v)
"""
# Calls that give the same in `dt`.
SAME = r"""
a.max()
torch.max(a)
torch.amax(a, 1)
torch.amax(a, dim=(0, 1))
torch.argsort(n, descending=True)
torch.argsort(a, dim=0)
a.flip(dims=(0, 1))
torch.flip(a, [1])
torch.argsort(a, axis=0)
a.argsort(axis=0)
torch.median(v)
torch.nanmedian(torch.tensor([1.0, float("nan"), 3.0, 2.0]))
torch.median(torch.tensor([1.0, float("nan"), 3.0, 2.0]))
torch.mode(n)
torch.kthvalue(v, 1)
a.std(unbiased=False)
a.std(0, False)
a.std(dim=0, correction=0)
torch.eq(v, v)
torch.nonzero(a > 1, as_tuple=True)
torch.argwhere(m)
torch.where(m)
torch.where(v > 1, v, 0.0)
torch.unique(n)
torch.unique(n, return_inverse=True, return_counts=True)
torch.unique(a > 0, dim=0)
torch.unique_consecutive(n)
v.repeat_interleave(2)
v.tile(2)
a.split(2, dim=1)
a.split([1, 2], dim=1)
torch.split(n, 3)
torch.chunk(n, 3)
torch.tensor_split(n, 3)
a.flip(0)
a.flip([1])
torch.flip(a, (0, 1))
a.roll(1, 0)
a.roll(1)
a.T
a.t()
a.transpose(0, 1)
a.permute(1, 0)
a.view(-1)
a.view(3, 2)
a.reshape(3, -1)
a.expand(2, 2, 3)
s.expand(3)
a.unsqueeze(0).squeeze(0)
a.flatten()
torch.flatten(a[None], 1)
a.unflatten(1, (3, 1))
a.numel()
a.dim()
a.size()
a.size(1)
list(a.shape)
a.stride()
a.sum(1)
a.sum(dim=(0, 1), keepdim=True)
m.sum()
n.sum().item()
m.float().mean()
a.mean(0)
a.prod(1)
n.prod()
a.norm()
a.norm(p=1)
a.norm(dim=1)
a.norm(2, 1)
torch.norm(a)
a.logsumexp(1)
a.cumsum(0)
torch.cumsum(a, dim=1)
torch.cumprod(v, 0)
torch.cummax(v, 0)
a.argmax()
a.argmax(1)
a.argmax(dim=1, keepdim=True)
a.topk(2)
a.topk(1, dim=0)
a.all()
m.any()
a.softmax(1)
torch.softmax(a, dim=-1)
a.log_softmax(-1)
a.clamp(-1, 2)
a.clamp(min=0)
torch.clip(a, 0, 1)
a.abs().sqrt()
a.pow(2)
a ** 2
n ** 2
2 ** n
n / 2
n / n
n // 2
n % 2
-7 // n
torch.floor_divide(n, 2)
torch.remainder(n, 2)
torch.fmod(n, -2)
torch.true_divide(n, 2)
n + v
n * 1.5
m + m
m * v
m & m
~m
m | (v > 1)
torch.logical_and(n, m)
n == 2
a != a
torch.bitwise_not(n)
torch.add(v, v, alpha=2)
v.add(v, alpha=2)
torch.sub(v, 1, alpha=2)
torch.addcmul(v, v, v, value=0.5)
torch.addcdiv(v, v, v)
torch.addmm(torch.zeros(2, 2), a, a.T, beta=0.5)
torch.sign(a)
torch.lerp(v, v + 1, 0.5)
torch.mm(a, a.T)
torch.bmm(a[None], a.T[None])
torch.mv(a, a[0])
torch.dot(v, v)
torch.outer(v, v)
torch.matmul(a, a.T)
torch.einsum("ij,kj->ik", a, a)
torch.tensordot(a, a, dims=([1], [1]))
torch.kron(v, v)
torch.cdist(a, a)
torch.diag(v)
torch.tril(a)
torch.triu(a, 1)
torch.trace(a[:, :2])
a.diagonal()
torch.diag_embed(v)
torch.gather(a, 1, torch.tensor([[0], [1]]))
a.gather(1, torch.tensor([[0, 0], [1, 2]]))
a.index_select(1, torch.tensor([0, 2]))
a.masked_fill(a > 1, 0)
a.masked_select(a > 1)
a[a > 1]
a[0]
a[:, 1]
a[[0, 1], [1, 2]]
a[..., None].shape
v.scatter(0, torch.tensor([0, 1]), 9.0)
torch.zeros(5).scatter_add(0, n, v)
torch.zeros(5).scatter(0, n, v)
torch.zeros(5).scatter_(0, torch.tensor([1, 2]), 1.0)
torch.zeros(4, 3).index_add(0, torch.tensor([0, 2]), a)
torch.zeros(4).scatter_reduce(0, n - 1, v, reduce="amax")
torch.stack([v, v])
torch.stack((v, v), dim=1)
torch.cat([a, a], 1)
torch.cat((v, v))
torch.hstack([v, v])
torch.vstack([v, v])
torch.meshgrid(torch.arange(2), torch.arange(3), indexing="xy")
torch.arange(4)
torch.arange(1, 4)
torch.arange(0, 1, 0.25)
torch.arange(3.0)
torch.arange(3, dtype=torch.float32)
torch.linspace(0, 1, 5)
torch.linspace(0, 1, steps=3)
torch.logspace(0, 2, 3)
torch.zeros(2, 3)
torch.zeros((2, 3))
torch.zeros([2])
torch.zeros(2, dtype=torch.long)
torch.ones(2, 2, dtype=torch.int32)
torch.full((2,), 7)
torch.full((2,), 7.0)
torch.full([2], True)
torch.eye(2)
torch.eye(2, 3)
torch.zeros_like(n)
torch.ones_like(a, dtype=torch.float64)
torch.full_like(a, 3)
torch.tensor(3)
torch.tensor(3.5)
torch.tensor([1, 2.5])
torch.tensor([True, False])
torch.tensor([[1], [2]])
torch.tensor([torch.tensor(1.0), torch.tensor(2.0)])
torch.tensor(np.ones(2))
torch.tensor(np.float32(3))
torch.tensor([])
torch.as_tensor([1.0])
torch.from_numpy(np.arange(3))
n.type(torch.float32)
n.float()
v.long()
v.int()
v.bool()
n.double()
n.to(torch.float32)
v.to("cpu")
v.to(v.device, torch.float64)
v.to(dtype=torch.int64, non_blocking=True)
v.to(n)
v.cpu()
v.type_as(n)
v.new_zeros(2)
v.new_full((2,), 3)
v.new_tensor([1.0])
v.new_ones((2, 2))
n.new_empty(3).shape[0]
v.tolist()
s.item()
float(s)
bool(s)
int(s)
f"{s:.2f}"
len(a)
[float(x) for x in v]
v.numpy()
np.asarray(v)
v.clone().zero_()
v.clone().fill_(2)
v.clone().add_(1)
v.clone().mul_(2)
v.clone().div_(2)
v.clone().clamp_(0, 2)
v.clone().copy_(torch.ones(4))
v.clone().copy_(torch.ones(1))
v.clone().masked_fill_(v > 1, 0)
a.clone().relu_()
a.clone().index_fill_(0, torch.tensor([0]), 1.0)
a.contiguous().is_contiguous()
a.is_floating_point()
torch.is_tensor(a)
torch.is_floating_point(n)
torch.numel(a)
a.is_cuda
a.element_size()
a.isnan()
torch.isclose(v, v)
torch.allclose(v, v + 1e-9)
torch.isin(n, torch.tensor([1, 2]))
torch.bucketize(v, torch.tensor([1.0, 2.0]))
torch.searchsorted(torch.tensor([1.0, 2.0, 3.0]), v)
torch.searchsorted(torch.tensor([1.0, 2.0, 3.0]), v, right=True)
torch.histc(v, 4, 0, 4)
torch.bincount(n)
torch.bincount(n, minlength=6)
torch.quantile(v, 0.5)
torch.quantile(a, 0.25, dim=1)
torch.quantile(v, torch.tensor([0.1, 0.9]))
torch.cov(a)
torch.corrcoef(a)
torch.diff(v)
torch.trapezoid(v)
torch.round(a)
torch.round(v / 3, decimals=2)
torch.count_nonzero(a > 0)
torch.count_nonzero(a, dim=0)
torch.nansum(v)
torch.nan_to_num(v / 0)
torch.atleast_2d(v)
torch.broadcast_to(v, (2, 4))
torch.broadcast_tensors(v, s)
torch.block_diag(a, a)
torch.movedim(a, 0, 1)
torch.swapaxes(a, 0, 1)
torch.squeeze(a[None])
torch.unsqueeze(v, 1)
torch.narrow(v, 0, 1, 2)
a.select(1, 0)
torch.unbind(a)
a.unbind(1)
a.unfold(1, 2, 1)
torch.cross(v[:3], v[1:], dim=0)
torch.renorm(a, 2, 0, 1.0)
torch.sigmoid(v)
torch.relu(a)
torch.tanh(v)
torch.erf(v)
torch.logit(v / 10)
torch.log1p(v)
torch.rsqrt(v)
torch.atan2(v, v)
torch.hypot(v, v)
torch.logaddexp(v, v)
torch.heaviside(a, s)
torch.reciprocal(v)
torch.square(v)
torch.maximum(v, s)
torch.linalg.norm(a)
torch.linalg.inv(a[:, :2])
torch.linalg.det(a[:, :2])
torch.linalg.svdvals(a)
torch.linalg.matrix_norm(a)
torch.linalg.vector_norm(a, dim=1)
torch.linalg.solve(a[:, :2], v[:2])
torch.fft.fft(v)
torch.fft.rfft(v).abs()
torch.special.expit(v)
torch.special.gammaln(v)
torch.nn.functional.relu(a)
torch.nn.functional.softmax(a, dim=1)
torch.nn.functional.one_hot(n, 4)
torch.nn.functional.mse_loss(v, v + 1)
torch.nn.functional.cross_entropy(a, torch.tensor([0, 2]))
torch.nn.functional.pad(a, (1, 1))
torch.nn.functional.normalize(a, dim=1)
torch.nn.Linear(2, 3).weight.shape[0]
torch.nn.Parameter(v).requires_grad
torch.autograd.grad((w * w).sum(), [w])
torch.func.grad(lambda x: (x * x).sum())(v)
torch.vmap(lambda x: x.sum())(a)
torch.func.jacrev(lambda x: x * x)(v)
torch.distributions.Normal(v, s).log_prob(v)
torch.distributions.Categorical(logits=a).entropy()
torch.nn.utils.rnn.pad_sequence([v, v[:2]], batch_first=True)
torch.finfo(torch.float32).eps
torch.iinfo(torch.int64).max
torch.promote_types(torch.int32, torch.float32) == torch.float32
torch.result_type(n, 1.5) == torch.float32
torch.get_default_dtype() == torch.float32
w.requires_grad
w.detach().requires_grad
(w * 2).is_leaf
w.data.requires_grad
"""


A = [[1.5, -2.0, 3.25], [4.0, 0.5, -6.0]]
B = [[1.0, 1.0, 4.0], [5.0, 0.0, -7.0]]
V, N, M, S, W = [3.0, 1.0, 2.0, 2.0], [3, 1, 2, 2], [True, False, True, True], 2.5, [3.0, 1.0]


def names(library: Any) -> dict[str, Any]:
    """Return the names of the rows as tensors of a library."""
    make = dt.asarray if library is dt else library.tensor
    values = {"a": A, "b": B, "v": V, "n": N, "m": M, "s": S}
    tensors = {name: make(x) for name, x in values.items()}
    return {"np": np, "torch": library, "w": make(W).requires_grad_(), **tensors}


def run(library: Any, code: str) -> Any:
    """Return the result of a row as Python objects and arrays."""
    with dt.device("reference"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return plain(eval(code, names(library)))


def plain(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return [plain(v) for v in value]
    if hasattr(value, "detach"):
        value = value.detach()
        value = value.resolve_conj() if hasattr(value, "resolve_conj") else value
        return np.asarray(value)
    return value


def is_same(p: Any, q: Any) -> bool:
    """Return True for results of equal structure, dtypes, shapes and values."""
    if isinstance(p, list) and isinstance(q, list):
        return len(p) == len(q) and all(map(is_same, p, q))
    if isinstance(p, np.ndarray) and isinstance(q, np.ndarray):
        close = p.shape == q.shape and np.allclose(p, q, 2e-5, 1e-6, equal_nan=True)
        return bool(close) and p.dtype == q.dtype
    arrays = isinstance(p, np.ndarray) or isinstance(q, np.ndarray)
    return not arrays and bool(p == q)


def calls(table: str) -> list[str]:
    return [code for code in table.splitlines() if code]


@pytest.mark.parametrize("code", calls(DIFFERS + REFUSED + SAME))
def test_call_gives_the_result_of_pytorch(code: str) -> None:
    torch = pytest.importorskip("torch")
    expected, found = run(torch, code), run(ours, code)
    assert is_same(expected, found), f"PyTorch: {expected!r}, dovetail.torch: {found!r}"


@pytest.mark.parametrize("code", calls(SAME))
def test_call_gives_the_same_in_dt(code: str) -> None:
    assert is_same(run(dt, code), run(ours, code))


@pytest.mark.parametrize("code", calls(DIFFERS))
def test_call_gives_another_result_in_dt(code: str) -> None:
    assert not is_same(run(dt, code), run(ours, code))


@pytest.mark.parametrize("code", calls(REFUSED))
def test_call_raises_an_error_in_dt(code: str) -> None:
    run(ours, code)
    with pytest.raises((dt.DovetailError, AttributeError, TypeError)):
        run(dt, code)
