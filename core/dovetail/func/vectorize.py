"""`dt.vmap`: a function of one example becomes a function of many."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial, update_wrapper
from typing import Any, ParamSpec, TypeAlias, TypeVar

import numpy as np

from .. import layout as lay
from ..argument_checks import choice, integer, shown
from ..argument_checks import function as callable_
from ..autograd.backward_pass import check_gradient
from ..autograd.engine import register_hook
from ..autograd.function import FunctionOutput
from ..autograd.tape import Node
from ..capture.pytree import FlatTree, flatten, rebuild, split_prefix
from ..compat.keywords import rebind_keywords
from ..engine import tracer_api
from ..errors import (
    ArgumentError,
    ArgumentTypeError,
    DovetailError,
    LayoutError,
    ShapeError,
    TransformError,
)
from ..functions.creation.from_values import asarray
from ..functions.shape.copies import concat
from ..functions.shape.manipulation import moveaxis
from ..ops import table as ops
from ..settings import Switch, current
from ..tensor.c_fields import is_strided
from ..tensor.primitives import apply, slice_along
from ..tensor.tensor import Tensor
from ..tracebacks import hide_internal_frames
from . import batching, batching_kernels, custom
from .batch_tracer import VmapTracer

__all__ = ["vmap"]

batching.rules.update(batching_kernels.RULES)
batching.tape_rules[FunctionOutput] = custom.batched_output

P = ParamSpec("P")
R = TypeVar("R")
Axes: TypeAlias = Any  # an int, None, or containers of them, as far down as they differ


def vmap(
    function: Callable[P, R],
    in_axes: Axes = 0,
    out_axes: Axes = 0,
    *,
    randomness: str = "different",
    chunk_size: int | None = None,
    **theirs: object,
) -> Callable[P, R]:
    """Return a function that does for all examples at once what `function` does for one.

    The function runs once; each op becomes one op over all examples.

    - `function`: takes and gives tensors, or containers of them, and knows nothing of the axis of
      examples.
    - `in_axes`: the axis of examples in each argument, None for one that all examples share: one
      value for all arguments, or a tuple with one for each, which may be containers like the
      arguments. Arguments by name have axis 0.
    - `out_axes`: the place of the axis of examples in each result.
    - `randomness`: "different" random numbers for each example, the "same", or an "error".
    - `chunk_size`: how many examples are done at once; None does all.

    Shapes: the axes of examples have one length.
    Dtypes: all.
    Gradient: as that of `function`, for each example; it can be inside, too.
    Raises: ShapeError where lengths differ; ArgumentError, AxisError for axes that do not fit;
    TransformError where the function looks at an example's value, or writes what differs into a
    tensor from outside.
    See also: `func.grad`, `autograd.jacobian`, `vectorize`, docs/transforms.md.

    >>> import dovetail as dt
    >>> x = dt.asarray([[1.0, 2.0], [3.0, 4.0]])
    >>> dt.vmap(lambda row: row / row.max())(x).tolist()
    [[0.5, 1.0], [0.75, 1.0]]
    >>> dt.vmap(dt.dot, in_axes=(0, None))(x, x[0]).tolist()
    [5.0, 11.0]
    """
    if theirs:
        return rebind_keywords(vmap, locals())
    callable_("vmap", function)
    mode = choice("vmap", randomness, "randomness", ("different", "same", "error"))
    size = None if chunk_size is None else integer("vmap", chunk_size, "chunk_size", 1)

    def call_mapped(*args: P.args, **options: P.kwargs) -> R:
        """Map the function; an error's traceback has the frames of the user only."""
        try:
            return map_chunks(args, options)
        except DovetailError as error:
            hide_internal_frames(error)
            raise

    def map_chunks(args: tuple[Any, ...], options: dict[str, Any]) -> R:
        """Run the function for all examples, in chunks of `chunk_size` if one is set."""
        flat, axes = _leaves_and_axes(in_axes, args, options)
        n = _common_size(flat, axes)
        if size is None or n <= size:
            return _run(function, flat, axes, n, out_axes, mode)
        chunks: list[R] = []
        for first in range(0, n, size):
            count = min(size, n - first)
            leaves = [
                x if d is None else slice_along(x, d, first, count)
                for x, d in zip(flat.leaves, axes, strict=True)
            ]
            chunks.append(_run(function, FlatTree(leaves, flat.tree), axes, count, out_axes, mode))
        whole: R = _concat_chunks(chunks, out_axes)
        return whole

    name = getattr(function, "__name__", None)
    if name is not None:
        update_wrapper(call_mapped, function)
    return call_mapped


# --- arguments ------------------------------------------------------------------------------------


def _leaves_and_axes(
    in_axes: Axes, args: tuple[object, ...], options: dict[str, object]
) -> tuple[FlatTree, list[int | None]]:
    """Return the leaves of the arguments, and the axis of examples of each."""
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    if isinstance(in_axes, tuple) and len(in_axes) != len(args):
        raise ArgumentError(
            f"vmap: in_axes must have one item per positional argument, {len(args)}, got "
            f"{len(in_axes)}; keyword arguments use axis 0"
        )
    each = in_axes if isinstance(in_axes, tuple) else (in_axes,) * len(args)
    flat = flatten((args, options))
    by_position, by_name = flat.tree.children()
    pairs = zip(each, by_position.children(), strict=True)
    axes = [d for a, tree in pairs for d in _axis_of_leaves("in_axes", a, tree)]
    axes += [0] * by_name.num_leaves
    leaves = [_check_mapped(x, d) for x, d in zip(flat.leaves, axes, strict=True)]
    checked_axes = [
        None if d is None else lay.axis("vmap", d, x.ndim)
        for x, d in zip(leaves, axes, strict=True)
    ]
    return FlatTree(leaves, flat.tree), checked_axes


def _axis_of_leaves(what: str, axes: Axes, tree: Any) -> list[int | None]:
    """Return an axis for each leaf of a tree. Raises: ArgumentError if containers do not match."""
    if axes is None or type(axes) is int:
        return [axes] * tree.num_leaves
    child_axes = split_prefix(axes, tree)
    if child_axes is not None:
        pairs = zip(child_axes, tree.children(), strict=True)
        return [d for a, child in pairs for d in _axis_of_leaves(what, a, child)]
    axes_tree = flatten(axes).tree
    if axes_tree.is_leaf():
        return [integer("vmap", axes, what)] * tree.num_leaves
    if tree.type in (None, type(None)):
        raise ArgumentError(
            f"vmap: {what} must be an int or None for a value that is no container, got "
            f"{shown(axes)}"
        )
    expected, actual = _describe(tree), _describe(axes_tree)
    raise ArgumentError(
        f"vmap: {what} must be an int, None or a container that matches {expected}, got "
        + (f"{actual} with other metadata" if actual == expected else actual)
    )


def _describe(tree: Any) -> str:
    """Return the type of a container, and its keys, fields or length: "a tuple of 2"."""
    kind = tree.type
    names = tree.entries() if issubclass(kind, dict) else getattr(kind, "_fields", None)
    size = f"of {tree.num_children}" if names is None else f"of {shown([*names])}"
    return f"{'an' if kind.__name__[0] in 'AEIOU' else 'a'} {kind.__name__} {size}"


def _check_mapped(x: object, axis: int | None) -> Any:
    """Return a mapped tensor or array as a strided tensor, or raise; for axis None, `x` as it is.

    Arrays are converted. Raises: ArgumentTypeError for numbers, LayoutError for other layouts.
    """
    if axis is None:
        return x
    if isinstance(x, np.ndarray):
        x = asarray(x)
    if not isinstance(x, Tensor):
        raise ArgumentTypeError(
            f"vmap: an argument with axis {axis} must be a tensor, got {shown(x)}; pass None for "
            "it in in_axes"
        )
    if not is_strided(x):
        raise LayoutError(
            f"vmap: an argument with axis {axis} must be strided, got layout {x.layout.name}; map "
            "over its parts, or use x.to_dense()"
        )
    return x


def _common_size(flat: FlatTree, axes: Sequence[int | None]) -> int:
    """Return the common number of examples. Raises: ArgumentError if none, ShapeError if unequal.

    ArgumentError is for no leaf with an axis of examples.
    """
    lengths = [x.shape[d] for x, d in zip(flat.leaves, axes, strict=True) if d is not None]
    sizes: dict[int, None] = dict.fromkeys(lengths)
    if not sizes:
        raise ArgumentError(
            "vmap: at least one argument must have an axis of examples; set it in in_axes"
        )
    if len(sizes) > 1:
        raise ShapeError(
            f"vmap: axes of examples must have the same length, got {sorted(sizes)}; pass None in "
            "in_axes for an argument that is the same for each example"
        )
    return next(iter(sizes))


# --- one run --------------------------------------------------------------------------------------


def _run(
    function: Callable[..., R],
    flat: FlatTree,
    axes: Sequence[int | None],
    n: int,
    out_axes: Axes,
    randomness: str,
) -> R:
    """Run the function once for `n` examples, and return the batched result."""
    examples = VmapTracer("vmap", n, randomness)
    many = [moveaxis(x, d, 0) if d else x for x, d in zip(flat.leaves, axes, strict=True)]

    def run_example() -> tuple[FlatTree, list[Tensor]]:
        """Run the function on one example's tensors; return its flat result and the leaves."""
        with _WITHOUT_SAVED_HOOKS if current().saved_value_hooks is not None else nullcontext():
            args, options = rebuild(flat, examples.arguments(flat.leaves, many, axes))
            out = flatten(function(*args, **options))
            return out, [_as_result(x) for x in out.leaves]

    out, results = tracer_api.run_traced(examples, run_example)
    axes_out = _axis_of_leaves("out_axes", out_axes, out.tree)
    whole: R = rebuild(
        out, [_batched_result(examples, x, d) for x, d in zip(results, axes_out, strict=True)]
    )
    _register_hooks(examples.hooks, flat.leaves)
    return whole


# saved_tensors_hooks around a `vmap` get the values of all examples, not those of one.
_WITHOUT_SAVED_HOOKS = Switch(saved_value_hooks=None)


def _register_hooks(hooks: Sequence[tuple[Node, Tensor]], arguments: Sequence[object]) -> None:
    """Register an example's hooks on batched tensors. Raises: TransformError for an argument.

    The gradient of an argument is computed outside, where others use it, too.
    """
    theirs = [x._expr.tape for x in arguments if isinstance(x, Tensor)]
    for one, whole in hooks:
        if any(whole._expr.tape is tape for tape in theirs):
            raise TransformError(
                "vmap: register_hook cannot be used on an argument of the function, whose gradient "
                "is computed outside; hook the tensor outside, or hook x.copy() inside"
            )
        register_hook(whole, partial(_run_hooks, one))


def _run_hooks(example_node: Node, g: Tensor) -> Tensor | None:
    """Call an example's hooks under vmap; return the changed gradient, or None without hooks."""
    hooks = tuple((example_node.hooks or {}).values())
    return vmap(partial(_apply_hooks, hooks, example_node))(g) if hooks else None


def _apply_hooks(
    hooks: Sequence[Callable[[Tensor], object]], example_node: Node, g: Tensor
) -> Tensor:
    """Call the hooks in order; return the gradient, replaced by each result that is not None."""
    for hook in hooks:
        changed = hook(g)
        g = (
            g
            if changed is None
            else check_gradient(
                "backward", "the gradient that a hook returned", example_node, changed
            )
        )
    return g


def _as_result(x: object) -> Tensor:
    """Return a result as a strided tensor; convert numbers and arrays, refuse other objects."""
    if is_strided(x):
        return x
    if isinstance(x, Tensor):
        raise LayoutError(
            f"vmap: results must be strided, got layout {x.layout.name}; return x.to_dense()"
        )
    if isinstance(x, (bool, int, float, complex, np.ndarray, np.generic)):
        return asarray(x)
    raise ArgumentTypeError(
        f"vmap: the function must return tensors or containers of tensors, got {shown(x)}"
    )


def _batched_result(examples: VmapTracer, x: Tensor, axis: int | None) -> Tensor:
    """Return a result for all examples, their axis at `axis`; with None, a shared one as it is.

    Raises: ArgumentError for None and a result that differs between examples.
    """
    if axis is None:
        if examples.is_batched(x._expr):
            raise ArgumentError(
                "vmap: out_axes must be an int for a result that differs between examples, got None"
            )
        return x
    whole = examples.all(x)
    d = lay.axis("vmap", axis, whole.ndim)
    own = whole._expr.op is not None
    placed = whole if d == 0 else moveaxis(whole, 0, d)
    return placed if own else apply(ops.COPY, (placed,))


def _concat_chunks(chunks: Sequence[Any], out_axes: Axes) -> Any:
    """Return the results of the chunks, joined along `out_axes`; for None, that of the first."""
    every = [flatten(p) for p in chunks]
    axes_out = _axis_of_leaves("out_axes", out_axes, every[0].tree)
    leaves = [
        every[0].leaves[i] if d is None else concat([p.leaves[i] for p in every], axis=d)
        for i, d in enumerate(axes_out)
    ]
    return rebuild(every[0], leaves)
