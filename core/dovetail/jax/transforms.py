"""Transformations of functions with JAX's arguments: `grad`, `vmap`, `jit` and others."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Any

import numpy as np

import dovetail as dt
from dovetail.extend import ArgumentError

from .dtype_config import as_tensor

__all__ = [
    "block_until_ready",
    "checkpoint",
    "device_get",
    "device_put",
    "grad",
    "hessian",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jit",
    "jvp",
    "linearize",
    "remat",
    "value_and_grad",
    "vjp",
    "vmap",
]

Function = Callable[..., Any]


VALUES = (int, float, complex, np.ndarray, np.generic)


def tensors_of(tree: Any) -> Any:
    """Return a tree with its numbers and arrays as tensors; bools stay."""
    return dt.tree.map(
        lambda x: as_tensor(x) if isinstance(x, VALUES) and not isinstance(x, bool) else x, tree
    )


def _with_tensors(function: Function, argnums: int | Sequence[int]) -> Function:
    """Return a function that converts the arguments `argnums` to tensors."""
    chosen = (argnums,) if isinstance(argnums, int) else tuple(argnums)

    @wraps(function, updated=())
    def call(*args: Any, **options: Any) -> Any:
        """Call the function with tensors in place of numbers and arrays."""
        positions = {n % len(args) for n in chosen if -len(args) <= n < len(args)}
        args = tuple([tensors_of(a) if i in positions else a for i, a in enumerate(args)])
        return function(*args, **options)

    return call


def grad(fun: Function, argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Function:
    """Return a function that computes the gradient of `fun`; `dt.func.grad` of numbers too.

    - `fun`: gives one number.
    - `argnums`: the position of the argument to differentiate by, or several.
    - `has_aux`: True if `fun` gives (value, aux); the result is then (gradient, aux).

    >>> import dovetail.jax as jax
    >>> jax.grad(lambda x: x**2)(3.0).item()
    6.0
    """
    return _with_tensors(dt.func.grad(fun, argnums, has_aux=has_aux), argnums)


def value_and_grad(
    fun: Function, argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Function:
    """Return a function that computes the value of `fun` and its gradient.

    - `fun`: gives one number.
    - `argnums`: the position of the argument to differentiate by, or several.
    - `has_aux`: True if `fun` gives (value, aux); the value is then the pair.

    >>> import dovetail.jax as jax
    >>> value, gradient = jax.value_and_grad(lambda x: x**2)(3.0)
    >>> value.item(), gradient.item()
    (9.0, 6.0)
    """
    return _with_tensors(dt.func.value_and_grad(fun, argnums, has_aux=has_aux), argnums)


def jacrev(fun: Function, argnums: int | Sequence[int] = 0) -> Function:
    """Return a function that computes the Jacobian of `fun` in reverse mode.

    - `fun`: gives a tensor.
    - `argnums`: the position of the argument to differentiate by, or several.

    >>> import dovetail.jax as jax
    >>> jax.jacrev(lambda x: x**2)(jax.numpy.ones(2)).tolist()
    [[2.0, 0.0], [0.0, 2.0]]
    """
    return _with_tensors(dt.func.jacrev(fun, argnums), argnums)


jacobian = jacrev


def jacfwd(fun: Function, argnums: int | Sequence[int] = 0) -> Function:
    """Return a function that computes the Jacobian of `fun` in forward mode.

    - `fun`: gives a tensor.
    - `argnums`: the position of the argument to differentiate by, or several.

    >>> import dovetail.jax as jax
    >>> jax.jacfwd(lambda x: x**2)(jax.numpy.ones(2)).tolist()
    [[2.0, 0.0], [0.0, 2.0]]
    """
    return _with_tensors(dt.func.jacfwd(fun, argnums), argnums)


def hessian(fun: Function, argnums: int | Sequence[int] = 0) -> Function:
    """Return a function that computes the second derivatives of `fun`.

    - `fun`: gives one number.
    - `argnums`: the position of the argument to differentiate by, or several.

    >>> import dovetail.jax as jax
    >>> jax.hessian(lambda x: x**3)(2.0).item()
    12.0
    """
    return _with_tensors(dt.func.hessian(fun, argnums), argnums)


jvp, vjp, linearize = dt.func.jvp, dt.func.vjp, dt.func.linearize


def vmap(
    fun: Function,
    in_axes: Any = 0,
    out_axes: Any = 0,
    axis_name: object = None,
    axis_size: int | None = None,
) -> Function:
    """Return a function that does for all examples at once what `fun` does for one.

    - `fun`: takes and gives tensors, or containers of them.
    - `in_axes`: the axis of examples in each argument; None for one that all examples share.
    - `out_axes`: the axis of examples in each result.
    - `axis_name`: must be None: dovetail has no collective functions of a named axis.
    - `axis_size`: is not needed.

    Raises: ArgumentError for a named axis.

    >>> import dovetail.jax as jax
    >>> jax.vmap(lambda x, y: x * y, in_axes=(0, None))(jax.numpy.arange(3), 2).tolist()
    [0, 2, 4]
    """
    if axis_name is not None:
        raise ArgumentError(
            f"vmap: axis_name must be None, got {axis_name!r}; sum over the axis after vmap"
        )
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    return dt.vmap(fun, in_axes, out_axes)


def jit(
    fun: Function | None = None,
    *,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Iterable[str] = (),
    donate_argnums: object = None,
    donate_argnames: object = None,
    keep_unused: bool = False,
    inline: bool = False,
) -> Any:
    """Return a captured form of `fun`, `dt.jit`, which takes ints and floats as tensors.

    - `fun`: takes and gives tensors, numbers, or containers of them. None gives a decorator.
    - `static_argnums`: the positions of arguments that stay as they are. Each value of them is a
      capture.
    - `static_argnames`: the names of such arguments.
    - `donate_argnums`, `donate_argnames`, `keep_unused`, `inline`: ignored.

    Bools, strings and functions are always static.

    >>> import dovetail.jax as jax
    >>> power = jax.jit(lambda x, n: x ** sum(range(n)), static_argnums=1)
    >>> power(2.0, 3).item()
    8.0
    """
    if fun is None:
        return lambda f: jit(f, static_argnums=static_argnums, static_argnames=static_argnames)
    try:
        names = [*inspect.signature(fun).parameters]
    except (TypeError, ValueError):  # a function of C
        names = []
    numbers = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)
    chosen = (static_argnames,) if isinstance(static_argnames, str) else tuple(static_argnames)
    static_names = {*chosen, *[names[n] for n in numbers if -len(names) <= n < len(names)]}
    static_numbers = {n % len(names) if names else n for n in numbers}
    static_numbers |= {names.index(n) for n in static_names}
    captured = dt.jit(fun, static_argnames=static_names)

    @wraps(fun, updated=())
    def call(*args: Any, **options: Any) -> Any:
        """Call the captured function with tensors in place of numbers and arrays."""
        args = tuple([a if i in static_numbers else tensors_of(a) for i, a in enumerate(args)])
        for name, value in options.items():
            if name not in static_names:
                options[name] = tensors_of(value)
        return captured(*args, **options)

    call.captured = captured  # type: ignore[attr-defined]  # a function has any attribute
    return call


def checkpoint(fun: Function) -> Function:
    """Return a function that computes `fun` again in the backward pass, to save memory.

    - `fun`: takes and gives tensors.

    >>> import dovetail.jax as jax
    >>> jax.grad(jax.checkpoint(lambda x: x**2))(3.0).item()
    6.0
    """

    @wraps(fun, updated=())
    def call(*args: Any, **options: Any) -> Any:
        """Call the function without saving its intermediate values."""
        return dt.autograd.checkpoint(fun, *args, **options)

    return call


remat = checkpoint


def device_get(x: Any) -> Any:
    """Return a tree with its tensors as NumPy arrays.

    - `x`: a tree of tensors.

    >>> import dovetail.jax as jax
    >>> jax.device_get({"a": jax.numpy.ones(2)})
    {'a': array([1., 1.], dtype=float32)}
    """
    return dt.tree.map(lambda leaf: leaf.numpy() if isinstance(leaf, dt.Tensor) else leaf, x)


def device_put(x: Any, device: Any = None) -> Any:
    """Return a tree with its tensors, numbers and arrays on a device.

    - `x`: a tree of values.
    - `device`: None is the default device.

    >>> import dovetail.jax as jax
    >>> jax.device_put([1.0], "reference")[0].device
    device("reference")
    """
    moved = dt.default_device() if device is None else device
    return dt.tree.map(lambda leaf: leaf.to(moved), tensors_of(x))


def block_until_ready(x: Any) -> Any:
    """Compute the tensors of a tree, wait for them, and return the tree.

    - `x`: a tree of tensors.

    >>> import dovetail.jax as jax
    >>> jax.block_until_ready((jax.numpy.ones(1),))[0].tolist()
    [1.0]
    """
    tensors: list[Any] = [leaf for leaf in dt.tree.leaves(x) if isinstance(leaf, dt.Tensor)]
    for tensor in tensors:
        tensor.block_until_ready()
    return x
