"""`dovetail.jax`: the calls of JAX give JAX's values and dtypes."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import dovetail as dt
import dovetail.jax as jax
import dovetail.jax.numpy as jnp
import numpy as np
import pytest

A = np.array([[3.0, 1.0, 2.0], [0.5, -1.0, 4.0]])
V, N, M = np.array([3.0, 1.0, 2.0]), np.array([2, 0, 1, 2]), np.array([True, False, True])
S = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 2.0]])

CALLS = """
jnp.array([1, 2]) | jnp.array([1.0, 2]) | jnp.array(3) | jnp.array(2.5) | jnp.array(1j)
jnp.asarray(V) | jnp.asarray(N) | jnp.array([v[0], 2.0]) | jnp.array([[n[0], 1], [2, n[1]]])
jnp.array(v, dtype=jnp.int32) | jnp.asarray([True, False]) | jnp.array(n, dtype=float)
jnp.arange(4) | jnp.arange(0.0, 1.0, 0.25) | jnp.arange(4, dtype=jnp.float32) | jnp.zeros((2, 3))
jnp.ones(3, dtype=int) | jnp.full((2,), 7) | jnp.full((2,), 0.5) | jnp.eye(3) | jnp.eye(2, 4)
jnp.linspace(0, 1, 5) | jnp.zeros_like(a) | jnp.ones_like(n) | jnp.full_like(a, 2)
jnp.identity(2) | jnp.tri(3) | jnp.geomspace(1.0, 8.0, 4) | jnp.logspace(0.0, 2.0, 3)
jnp.log(0.5) | jnp.sqrt(2) | jnp.exp(V) | jnp.sin(a) | jnp.abs(-3) | jnp.maximum(0.0, a)
jnp.maximum(a, 0) | jnp.power(2.0, n) | jnp.power(a, 2) | jnp.where(m, v, 0.0)
jnp.where(m, 1.0, -1.0) | jnp.where(a > 1, a, -a) | jnp.clip(a, 0, 2) | jnp.clip(a, max=1.0)
jnp.add(n, 0.5) | jnp.add(n, 1) | jnp.multiply(n, v[0]) | jnp.arctan2(v, 2.0) | jnp.logaddexp(v, v)
jnp.sum(n) | jnp.sum(a, axis=1) | jnp.sum(m) | jnp.prod(n) | jnp.mean(n) | jnp.mean(a, 0)
jnp.mean(m) | jnp.var(a, ddof=1) | jnp.std(a, axis=1) | jnp.max(a, axis=0) | jnp.min(a)
jnp.argmax(a) | jnp.argmin(a, axis=1) | jnp.argsort(v) | jnp.sort(a) | jnp.sort(a, axis=0)
jnp.cumsum(v) | jnp.cumsum(n) | jnp.cumsum(a, axis=1) | jnp.cumprod(v) | jnp.median(v)
jnp.quantile(v, 0.3) | jnp.percentile(v, 40.0) | jnp.all(m) | jnp.any(a > 3) | jnp.ptp(v)
jnp.count_nonzero(a > 1) | jnp.nansum(v) | jnp.average(v, weights=v) | jnp.diff(v)
jnp.dot(v, v) | jnp.dot(a, v) | jnp.matmul(a, s) | jnp.vdot(v, v) | jnp.inner(a, v)
jnp.outer(v, v) | jnp.tensordot(a, a, axes=2) | jnp.einsum('ij,j->i', a, v) | jnp.cross(v, v + 1)
jnp.kron(v, v) | jnp.trace(s) | jnp.einsum('i,ij->j', n[:2], a)
jnp.reshape(a, (3, 2)) | jnp.reshape(a, -1) | jnp.transpose(a) | jnp.swapaxes(a, 0, 1)
jnp.moveaxis(a, 0, 1) | jnp.squeeze(a[None]) | jnp.expand_dims(v, 0) | jnp.ravel(a)
jnp.broadcast_to(v, (2, 3)) | jnp.concatenate([v, v]) | jnp.concatenate([a, a], axis=1)
jnp.stack([v, v], axis=-1) | jnp.vstack([v, v]) | jnp.hstack([v, v]) | jnp.column_stack([v, v])
jnp.block([[s, s], [s, s]]) | jnp.split(v, 3)[1] | jnp.split(n, [1, 3])[1] | jnp.array_split(n, 3)[0]
jnp.tile(v, 2) | jnp.repeat(v, 2) | jnp.flip(v) | jnp.roll(a, 1, axis=1) | jnp.rot90(a)
jnp.pad(v, 1) | jnp.pad(a, ((1, 0), (0, 2))) | jnp.diag(v) | jnp.diag(s) | jnp.tril(s)
jnp.triu(s, 1) | jnp.take(v, n[1:3]) | jnp.take_along_axis(a, jnp.argsort(a), axis=1)
jnp.meshgrid(v, n)[0] | jnp.meshgrid(v, n, indexing='ij')[1] | jnp.searchsorted(jnp.sort(v), 1.5)
jnp.interp(1.5, jnp.sort(v), v) | jnp.bincount(n) | jnp.bincount(n, length=5) | jnp.unique(n)
jnp.nonzero(m)[0] | jnp.argwhere(m) | jnp.isin(n, n[:1]) | jnp.histogram(v, bins=2)[0]
jnp.gradient(v) | jnp.trapezoid(v) | jnp.convolve(v, v) | jnp.correlate(v, v) | jnp.cov(a)
jnp.polyval(v, 2.0) | jnp.floor(a) | jnp.round(a) | jnp.sign(a) | jnp.mod(n, 2) | jnp.divide(n, 2)
jnp.floor_divide(n, 2) | jnp.isnan(a) | jnp.nan_to_num(a) | jnp.real(v) | jnp.allclose(v, v)
jnp.linalg.solve(s, v) | jnp.linalg.inv(s) | jnp.linalg.det(s) | jnp.linalg.cholesky(s)
jnp.linalg.slogdet(s)[1] | jnp.linalg.norm(v) | jnp.linalg.norm(a, axis=1) | jnp.linalg.norm(a)
jnp.linalg.eigvalsh(s) | jnp.linalg.svd(s)[1] | jnp.linalg.matrix_power(s, 2) | jnp.linalg.pinv(s)
jnp.fft.fft(v) | jnp.fft.rfft(v) | jnp.fft.irfft(jnp.fft.rfft(n)) | jnp.fft.fftfreq(4) | jnp.size(a)
jnp.ndim(a) | jnp.shape(a) | jnp.issubdtype(a.dtype, jnp.floating) | jnp.float32(2) | jnp.int32(2)
jnp.finfo(jnp.float32).eps | jnp.pi | v * jnp.float32(2) | n / 2 | n * 0.5 | 2**n | a @ v
a.at[0].set(9.0) | a.at[:, 1].add(v[:2]) | v.at[n].add(1.0) | v.at[n].multiply(2.0) | v.at[n].max(2.5)
v.at[n].min(0.5) | a.at[0, 1].divide(4.0) | v.at[1].power(3.0) | v.at[n[:2]].apply(jnp.sin)
v.at[n].subtract(1.0) | v.at[m].set(0.0) | v.at[1:].multiply(v[:2]) | v.at[n].get() | v.at[m].add(1.0)
lax.add(v, v) | lax.rsqrt(v) | lax.select(m, v, -v) | lax.select_n(m, v, -v) | lax.clamp(0.0, a, 2.0)
lax.dynamic_slice(a, (1, 1), (1, 2)) | lax.dynamic_slice(a, (n[0], n[2]), (1, 2))
lax.dynamic_slice(v, (n[1] - 1,), (2,)) | lax.dynamic_update_slice(a, a[:1, :2], (n[2], n[0]))
lax.dynamic_update_slice(a, a[:1, :2], (1, 5)) | lax.dynamic_index_in_dim(a, n[2], 0)
lax.dynamic_index_in_dim(a, 1, 1, False) | lax.dynamic_slice_in_dim(v, 5, 2)
lax.dynamic_update_slice_in_dim(v, v[:1], n[0], 0) | lax.dynamic_update_index_in_dim(a, v, 1, 0)
lax.slice_in_dim(v, 1, 3) | lax.iota(jnp.float32, 3) | lax.top_k(v, 2)[1] | lax.expand_dims(v, (0,))
lax.rev(a, (0,)) | lax.concatenate([v, v], 0) | lax.convert_element_type(v, jnp.int32) | lax.rem(n, 2)
lax.stop_gradient(v) | lax.map(lambda x: x * x, v) | lax.cond(v[0] > 2, jnp.sin, jnp.cos, v)
lax.cond(True, lambda x: x + 1, lambda x: x, 1) | lax.switch(n[0], [jnp.sin, jnp.cos, jnp.tan], v)
lax.switch(7, [jnp.sin, jnp.cos], v) | lax.scan(lambda c, x: (c + x, c * x), 0.0, v)[1]
lax.scan(lambda c, x: (c + x, c), 0, n)[0] | lax.scan(lambda c, x: (c + x.sum(), c), 0, n[:, None])[0]
lax.scan(lambda c, x: (c + 1, x), 0, a, reverse=True)[1] | lax.fori_loop(0, 4, lambda i, x: x + i, 0)
lax.scan(lambda c, _: (c * 2, c), 1.0, None, length=3)[1] | lax.fori_loop(0, n[0], lambda i, x: x * 2, v)
lax.while_loop(lambda x: x < 100, lambda x: x * 3, 1) | lax.while_loop(lambda c: c[0] < 5, lambda c: (c[0] + 1, c[1] * 2), (0, v))[1]
jax.nn.relu(-v) | jax.nn.softmax(a) | jax.nn.log_softmax(a) | jax.nn.gelu(v) | jax.nn.silu(v)
jax.nn.gelu(v, approximate=False) | jax.nn.softplus(v) | jax.nn.one_hot(n, 3) | jax.nn.sigmoid(v)
jax.nn.one_hot(n, 2, axis=0) | jax.nn.standardize(a) | jax.nn.leaky_relu(-v) | jax.nn.elu(-v)
jax.nn.logsumexp(v) | jax.nn.swish(v) | jax.nn.log_sigmoid(v) | jax.nn.hard_tanh(v) | jax.nn.tanh(v)
jax.scipy.special.logsumexp(v) | jax.scipy.special.erf(v) | jax.scipy.special.gammaln(v)
jax.scipy.linalg.cho_solve((jnp.linalg.cholesky(s), True), v) | jax.scipy.linalg.cholesky(s)
jax.scipy.linalg.cho_solve(jax.scipy.linalg.cho_factor(s), a.T) | jax.scipy.linalg.expm(s)
jax.scipy.linalg.solve_triangular(s, v) | jax.scipy.linalg.solve_triangular(s, v, lower=True, trans=1)
jax.ops.segment_sum(v, n[:3], 3) | jax.grad(lambda x: (x**3).sum())(v) | jax.grad(jnp.sin)(2.0)
jax.value_and_grad(lambda x: x**2)(3.0)[1] | jax.grad(lambda x, y: x * y, argnums=1)(2.0, 3.0)
jax.grad(lambda x: (x**2, x + 1), has_aux=True)(3.0)[1] | jax.hessian(lambda x: (x**3).sum())(v)
jax.grad(lambda p: p['w'] * p['b'])({'w': 2.0, 'b': 3.0})['w'] | jax.jacfwd(jnp.sin)(v)
jax.jacrev(lambda x: jnp.outer(x, x))(v) | jax.jvp(jnp.sin, (v,), (v,))[1] | jax.vjp(jnp.sin, v)[1](v)[0]
jax.vmap(lambda r: r.sum())(a) | jax.vmap(jnp.dot, in_axes=(0, None))(a, v) | jax.vmap(jnp.sin)(V)
jax.vmap(lambda r: r * 2, in_axes=1, out_axes=1)(a) | jax.jit(lambda x, k: x * k)(v, 3)
jax.jit(lambda x, k: x ** len(range(k)), static_argnums=1)(v, 2) | jax.jit(lambda x: x + 1)(1)
jax.vmap(lambda x, k: x.at[k].set(0.0))(a, n[:2])
jax.vmap(lambda x, k: x.at[k].add(v[:2]), (0, None))(a, n[:2]) | jax.grad(lambda x: (x.at[n].add(x[0]) ** 2).sum())(v)
jax.vmap(lambda k: lax.dynamic_slice(v, (k,), (2,)))(n) | jax.vmap(lambda k: v.at[k].multiply(2.0))(n)
jax.vmap(lambda k: lax.dynamic_update_slice(v, v[:2] * 0, (k,)))(n) | jax.checkpoint(jnp.sin)(v)
jax.tree.map(lambda x, y: x + y, {'a': v}, {'a': 1})['a'] | jax.tree.reduce(jnp.add, [v, v, v])
jax.tree_util.tree_leaves({'b': v, 'a': 1})[0] | jax.flatten_util.ravel_pytree({'b': v, 'a': a})[0]
jax.flatten_util.ravel_pytree([v, a])[1](jnp.arange(9.0))[1] | jax.device_get({'a': v})['a']
jax.block_until_ready([v])[0] | jax.device_put(V) | isinstance(v, jax.Array) | isinstance(v, jnp.ndarray)
"""  # noqa: E501
RANDOM = """
key(3) | key(-5) | split(k) | split(k, 5) | split(k, (2, 3)) | fold_in(k, 17) | bits(k, (5,))
bits(k, (3,), 'uint8') | bits(k, (3,), 'uint16') | uniform(k) | uniform(k, (3,), minval=-2.0, maxval=5.0)
uniform(k, (4,), 'float16') | uniform(k, (4,), 'bfloat16') | normal(k, (9,)) | normal(k, (3,), 'float16')
truncated_normal(k, -1.0, 2.0, (6,)) | bernoulli(k, 0.3, (9,)) | bernoulli(k) | rademacher(k, (6,))
randint(k, (9,), 0, 10) | randint(k, (9,), -5, 100000) | exponential(k, (5,)) | gumbel(k, (5,))
logistic(k, (5,)) | laplace(k, (5,)) | cauchy(k, (5,)) | categorical(k, np.log(P), shape=(8,))
permutation(k, 10) | permutation(k, X) | permutation(k, X, axis=1) | choice(k, 10, (5,))
choice(k, 10, (5,), replace=False) | choice(k, np.arange(4.0), (7,), p=P) | choice(k, X, (2,), False)
choice(k, np.arange(4.0), (3,), False, p=P) | multivariate_normal(k, np.zeros(2), S, (3,))
"""  # noqa: E501
RANDOM_VALUES = {
    "P": np.array([0.1, 0.2, 0.3, 0.4]),
    "X": np.arange(6.0).reshape(3, 2),
    "S": np.array([[2.0, 0.5], [0.5, 1.0]]),
    "np": np,
}


def names(library: Any, xp: Any) -> dict[str, Any]:
    """Return the names of the calls: arrays of a library, and its modules."""
    arrays = {"a": A, "v": V, "n": N, "m": M, "s": S}
    return {
        "jax": library, "jnp": xp, "lax": library.lax, "V": V, "N": N, "np": np,
        **{name: xp.asarray(value) for name, value in arrays.items()},
    }  # fmt: skip


def calls(text: str) -> list[str]:
    return [call.strip() for call in re.split(r" \| |\n", text) if call.strip()]


def peer() -> Any:
    peer = pytest.importorskip("jax", reason="jax is not installed: pip install jax")
    for part in ("flatten_util", "scipy.linalg", "scipy.special"):
        import_module(f"jax.{part}")
    return peer


@pytest.mark.parametrize("call", calls(CALLS))
def test_call_gives_the_values_and_the_dtype_of_jax(call: str) -> None:
    library = peer()
    theirs = np.asarray(eval(call, names(library, library.numpy)))
    ours = eval(call, names(jax, jnp))
    ours = np.asarray(ours.numpy() if isinstance(ours, dt.Tensor) else ours)
    if call not in ("jnp.pi", "jnp.finfo(jnp.float32).eps"):
        assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
    np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("call", calls(RANDOM))
def test_key_gives_the_numbers_of_jax(call: str) -> None:
    library = peer()
    values = []
    for random in (library.random, jax.random):
        members = {name: getattr(random, name) for name in jax.random.__all__}
        values.append(eval(call, {**members, **RANDOM_VALUES, "k": random.PRNGKey(1)}))
    theirs, ours = values
    if library.dtypes.issubdtype(theirs.dtype, library.dtypes.prng_key):
        theirs = library.random.key_data(theirs)
    assert (ours.numpy().dtype, ours.shape) == (theirs.dtype, theirs.shape)
    ours, theirs = (np.asarray(x).astype(float) for x in (ours.numpy(), theirs))
    np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-6)


def threefry(key: list[int], counter: list[int]) -> list[int]:
    """Return the words of Threefry-2x32 as the paper defines them."""
    word = 0xFFFFFFFF
    keys = [*key, key[0] ^ key[1] ^ 0x1BD11BDA]
    a, b = ((c + k) & word for c, k in zip(counter, key, strict=True))
    for r in range(20):
        turn = (13, 15, 26, 6, 17, 29, 16, 24)[r % 8]
        a = (a + b) & word
        b = ((b << turn | b >> (32 - turn)) & word) ^ a
        if r % 4 == 3:
            n = r // 4 + 1
            a, b = (a + keys[n % 3]) & word, (b + keys[(n + 1) % 3] + n) & word
    return [a, b]


def test_split_gives_the_words_of_threefry() -> None:
    assert threefry([0, 0], [0, 0]) == [0x6B200159, 0x99BA4EFE]  # Random123's known answers
    keys = jax.random.split(jax.random.key(7), 3)
    assert keys.tolist() == [threefry([0, 7], [0, i]) for i in range(3)]


def draw(key: dt.Tensor) -> dt.Tensor:
    first, second = jax.random.split(key)
    return jax.random.normal(first, (4,)) + jax.random.uniform(second, (4,))


@pytest.mark.parametrize("transform", [jax.jit, jax.vmap, lambda f: jax.jit(jax.vmap(f))])
def test_numbers_of_a_key_do_not_depend_on_vmap_or_jit(transform: Callable[..., Any]) -> None:
    keys = jax.random.split(jax.random.key(0), 3)
    plain = [draw(key).tolist() for key in keys]
    mapped = transform(draw)(keys[0] if transform is jax.jit else keys).tolist()
    assert mapped == (plain[0] if transform is jax.jit else plain)


@pytest.mark.parametrize("device", ["reference", "cpu"])
def test_numbers_of_a_key_are_the_same_on_every_device(device: str) -> None:
    if device not in map(str, dt.devices()):
        pytest.skip(f"no device {device}")
    key = jax.random.key(5).to(device)
    values = jax.random.uniform(key, (2,))
    assert values.device == dt.device(device)
    words = [(lambda w: w[0] ^ w[1])(threefry([0, 5], [0, i])) for i in range(2)]
    assert values.tolist() == [(w >> 9) * 2.0**-23 for w in words]


def test_ints_of_a_jitted_function_are_tensors_unless_static() -> None:
    seen = []
    f = jax.jit(lambda x, k, flag: (seen.append((type(k), flag)), x * k)[1])
    assert [f(jnp.ones(1), k, True).item() for k in (2, 3, 4)] == [2.0, 3.0, 4.0]
    assert seen == [(dt.Tensor, True)]


@pytest.mark.parametrize("x64", [False, True])
def test_value_is_rounded_once_to_the_dtype(x64: bool) -> None:
    tie = 1.0 + 2**-8 + 2**-40  # as float32 it is halfway between two of bfloat16
    jax.config.update("jax_enable_x64", x64)
    try:
        assert jnp.array(2**40, dtype=jnp.float32).item() == 2**40
        assert jnp.array([jnp.asarray(1), 2**40], dtype=jnp.float32).tolist() == [1, 2**40]
        assert jnp.asarray(np.array([3_000_000_000]), dtype=jnp.float32).tolist() == [3e9]
        assert jnp.array(tie, dtype=jnp.bfloat16).item() == 1.0078125
        assert jax.lax.convert_element_type(tie, jnp.bfloat16).item() == 1.0078125
        assert jnp.array(2**40 + 0.5, dtype=jnp.float64).dtype is (
            dt.float64 if x64 else dt.float32
        )
    finally:
        jax.config.update("jax_enable_x64", False)


@pytest.mark.parametrize("is_lower", [False, True])
def test_cho_solve_solves_by_either_factor(is_lower: bool) -> None:
    spd, b = jnp.array(S @ S.T), jnp.array(V)
    factor = jax.scipy.linalg.cho_factor(spd, lower=is_lower)
    for right in (b, b[:, None] * dt.ones((1, 2))):
        x = jax.scipy.linalg.cho_solve(factor, right)
        assert x.tolist() == dt.linalg.cholesky_solve(right, factor[0], upper=not is_lower).tolist()
        np.testing.assert_allclose((spd @ x).numpy(), right.numpy(), 1e-4)


def test_x64_setting_keeps_64_bits() -> None:
    try:
        jax.config.update("jax_enable_x64", True)
        kinds = [jnp.array(x).dtype.name for x in (1, 1.0)] + [jnp.sum(jnp.ones(2)).dtype.name]
        assert kinds == ["int64", "float64", "float64"]
        assert jax.random.uniform(jax.random.key(0)).dtype is dt.float64
    finally:
        jax.config.update("jax_enable_x64", False)
    assert jnp.array(1.0).dtype is dt.float32


def test_names_list_themselves_and_others_raise() -> None:
    modules = jnp, jnp.linalg, jnp.fft, jax.lax, jax.nn, jax.random, jax.ops, jax.scipy.special
    for module in modules:
        assert [name for name in dir(module) if not hasattr(module, name)] == []
    with pytest.raises(AttributeError, match="has no attribute 'psum'"):
        jax.lax.psum  # noqa: B018
    with pytest.raises(dt.ArgumentError, match="axis_name must be None"):
        jax.vmap(jnp.sin, axis_name="i")


def test_import_of_dovetail_does_not_import_the_names_of_jax() -> None:
    program = "import sys, dovetail; dovetail.ones(1); print('dovetail.jax' in sys.modules)"
    command = [sys.executable, "-c", program]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "False\n"
