"""Templates of the expressions that a composed function records.

The expressions that `softmax` records depend only on the operand's spec and the axis. Broadcasting,
promotion and default arguments cost more than building the expressions, so a template is stored and
later calls instantiate it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from ..device_class import Device, default_device
from ..dtypes import DType
from ..engine.events import counters
from ..graph.expr import Args, Attrs, Expr, Spec, leaf, mark_index_check, node, storage_of
from ..layout import Move, Shape
from ..lru_cache import LRUCache
from ..memory.storage import Storage
from ..memory.tracing.stacktrace import current_line
from ..ops.table import Op
from ..settings import current, fills_junk, flags, is_eager
from ..tensor.c_fields import expr_of, is_strided, keep_class
from ..tensor.host import allocate_leaf
from ..tensor.tensor import Tensor, create_lazy_storage, create_tensor


class NodeTemplate:
    """One expression of a template: an op with its arguments, or a view of an argument's memory.

    New memory has neither op nor argument. A view has no op and one argument. Its offset is
    relative to the argument's offset; its moves lead to it from an argument that is pending.
    """

    __slots__ = (
        "args",
        "attrs",
        "checks_indices",
        "moves",
        "numbers",
        "numbers_only",
        "offset",
        "op",
        "spec",
        "strides",
    )

    op: Op | None
    args: tuple[int, ...]  # positions in the list inputs + results of earlier steps; -1: a number
    numbers: tuple[Any, ...]  # the numbers among the arguments, None at the position of an Expr
    attrs: Attrs
    spec: Spec
    numbers_only: bool  # True if no argument is an Expr
    checks_indices: bool
    strides: Shape
    offset: int
    moves: tuple[Move, ...]

    def __init__(self, e: Expr, args: tuple[int, ...]) -> None:
        self.op, self.attrs, self.spec, self.args = e.op, e.attrs, e.spec, args
        self.numbers = tuple([None if type(a) is Expr else a for a in e.args])
        self.numbers_only = all([k < 0 for k in args])
        self.checks_indices = e.check_line is not None
        self.strides, self.offset, self.moves = (), 0, ()
        if e.op is None:
            self.strides, self.offset, self.moves = e.strides, e.offset, e.moves


Recipe: TypeAlias = list[NodeTemplate]  # the steps of a template
Sources: TypeAlias = dict[Storage, tuple[int, Expr]]  # the input leaves by their storages


def build_recipe(
    result: Expr, inputs: Sequence[Expr], views: bool = False, checks: bool = True
) -> Recipe | None:
    """Return the steps that build `result` from inputs and numbers, or None if it needs more.

    An empty list means that the result is the last input.

    views: accept views of the inputs' memory. Such a recipe depends on the inputs' strides
    (`input_properties`).
    checks: accept ops that check indices. Their errors name the line that replays the recipe.
    """
    steps: Recipe = []
    sources: Sources = {}
    if views:
        for i, e in enumerate(inputs):
            if e.op is None and sources.setdefault(storage_of(e), (i, e))[1] is not e:
                return None  # two inputs share a storage: the source of a view is ambiguous
    index = {e: i for i, e in reversed([*enumerate(inputs)])}
    if result in index and result is not inputs[-1]:
        return None
    complete = _append_steps(result, index, sources, steps, len(inputs), views)
    return (
        steps if complete and (checks or not any([step.checks_indices for step in steps])) else None
    )


def _append_steps(
    e: Expr, index: dict[Expr, int], sources: Sources, steps: Recipe, count: int, views: bool
) -> bool:
    """Append the steps that build `e`; return False if it depends on more than the inputs."""
    if e in index:
        return True
    if e.tape is not None:
        return False
    if e.op is not None:
        if e.depth == 0:  # a constant that the host has computed of elements
            return False
        for a in e.args:
            if type(a) is Expr and not _append_steps(a, index, sources, steps, count, views):
                return False
        step = NodeTemplate(e, tuple([index[a] if type(a) is Expr else -1 for a in e.args]))
    else:
        storage = storage_of(e)
        if not views or storage not in sources:
            pending = storage.pending
            if not views or pending is None:
                return False
            if not _append_steps(pending, index, sources, steps, count, views):
                return False
            step = NodeTemplate(e, (index[pending],))
        else:
            i, source = sources[storage]
            step = NodeTemplate(e, (i,))
            step.offset -= source.offset
            step.moves = e.moves[len(source.moves) :]
    steps.append(step)
    index[e] = count + len(steps) - 1
    return True


def input_properties(e: Expr) -> tuple[object, ...]:
    """Return the properties of an input on which a recipe with views depends."""
    if e.op is not None:
        return (e.spec,)
    return (e.spec, e.strides, None if storage_of(e).pending is None else e.moves)


def replay_recipe(steps: Recipe, inputs: list[Expr]) -> Expr:
    """Build the pending result of a recipe from other inputs of the same specs."""
    if len(steps) == 1:
        return _replay_step(steps[0], inputs, None)
    exprs = list(inputs)
    storages: dict[int, Storage] = {}
    for step in steps:
        exprs.append(_replay_step(step, exprs, storages))
    return exprs[-1]


def _replay_step(
    step: NodeTemplate, exprs: list[Expr], storages: dict[int, Storage] | None
) -> Expr:
    """Build the expression of one step from those of inputs and earlier steps.

    storages: those that views of a pending source share, by its position; None for an only step.
    """
    positions = step.args
    j = positions[0] if positions else -1
    if step.op is None:
        return allocate_leaf(step.spec) if j < 0 else _alias_leaf(step, exprs[j], storages)
    args: Args
    if len(positions) == 1 and j >= 0:  # fast paths: most ops have one or two arguments
        args = (exprs[j],)
    elif len(positions) == 2:
        k = positions[1]
        args = (
            exprs[j] if j >= 0 else step.numbers[0],
            exprs[k] if k >= 0 else step.numbers[1],
        )
    elif step.numbers_only:
        args = step.numbers
    else:
        numbered: list[object] = [None] * len(positions)
        for k in range(len(positions)):
            j = positions[k]
            numbered[k] = exprs[j] if j >= 0 else step.numbers[k]
        args = tuple(numbered)
    e = node(step.op, args, step.spec, step.attrs)
    if step.checks_indices:
        mark_index_check(e, current_line())
    return e


def _alias_leaf(step: NodeTemplate, source: Expr, storages: dict[int, Storage] | None) -> Expr:
    """Return a leaf over the memory of `source`; views of one pending source share a storage."""
    if source.op is None:
        moves = () if storage_of(source).pending is None else source.moves + step.moves
        offset = source.offset + step.offset
        return leaf(source.storage, step.spec, step.strides, offset, moves)
    at = step.args[0]
    if storages is None:
        storages = {}
    if at not in storages:
        storages[at] = create_lazy_storage(source)
    return leaf(storages[at], step.spec, step.strides, step.offset, step.moves)


# A template is built on the second call with a key: such a key is likely to occur again.
_SEEN_ONCE: Recipe = []
_NOT_REPEATABLE: Recipe = []  # the result depends on more than the inputs


class CachedFunction:
    """A composed function that replays a template for arguments of known specs and options.

    The expressions that the function records must depend only on the specs and strides of its
    tensors and on the options, not on values that the host reads. A function that creates tensors
    without tensor arguments (`creates`) also depends on the default device and dtype. One that
    `allocates` creates a tensor of new memory whose elements are not set.
    """

    __slots__ = ("_young", "allocates", "creates", "function", "generation", "latest", "templates")

    generation: int  # number of times that the templates became invalid
    latest: object  # the latest template, or call that replayed one twice; `plain_calls` sets it

    def __init__(
        self, function: Callable[..., Tensor], creates: bool = False, allocates: bool = False
    ) -> None:
        self.function, self.creates, self.allocates = function, creates, allocates
        self.generation, self.latest = 0, None
        self.templates: LRUCache[tuple[object, ...], Recipe] = LRUCache(1024)
        self._young = self.templates.young  # stays the same dict
        if creates:
            creation_functions.append(self)

    def call(self, args: tuple[Any, ...], options: dict[str, Any]) -> Tensor:
        """Return the result: from a template if there is one for such arguments, else by a call."""
        result, _ = self.call_and_find_template(args, options)
        return result

    def call_and_find_template(
        self, args: tuple[Any, ...], options: dict[str, Any]
    ) -> tuple[Tensor, Recipe | None]:
        """Return the result as `call` does, and the template that was replayed, if any."""
        exprs: list[Expr] = []
        key: list[object] | None = None
        if not flags.depth:
            is_eager()  # it restores the depth if no context is eager
        if (
            flags.depth
            and not flags.captures  # else ops run eagerly, or a tracer records them
            and not (self.allocates and flags.may_fill_junk and fills_junk())
        ):
            key = _key(args, options, exprs, self.creates)
        if key is None:
            return self.function(*args, **options), None
        whole = tuple(key)
        steps = self._young.get(whole)
        if steps is None:
            steps = self.templates.find(whole)
        if steps:
            result = create_tensor(replay_recipe(steps, exprs))
            for a in args:
                keep_class(result, a)
            return result, steps
        return self._call_function(args, options, whole, exprs, steps), None

    def _call_function(
        self,
        args: tuple[Any, ...],
        options: dict[str, Any],
        key: tuple[object, ...],
        exprs: list[Expr],
        steps: Recipe | None,
    ) -> Tensor:
        """Call the function; on the second call with a key, store a template of its result."""
        before = counters.evaluations
        result = self.function(*args, **options)
        if steps is None:
            self.templates[key] = _SEEN_ONCE
        elif steps is _SEEN_ONCE:
            template = None
            if self.allocates:
                template = [NodeTemplate(expr_of(result), ())]
            elif is_strided(result) and counters.evaluations == before and _is_new(result, exprs):
                template = build_recipe(expr_of(result), exprs, views=_all_in_memory(exprs))
                if template and not _uses_all(template, len(exprs)):
                    template = None
            self.templates[key] = template or _NOT_REPEATABLE
        return result


def _uses_all(steps: Recipe, count: int) -> bool:
    """Return True if a recipe uses all inputs; the function may have read the value of another."""
    return {*range(count)} <= {k for step in steps for k in step.args}


creation_functions: list[CachedFunction] = []


def clear_creation_caches() -> None:
    """Empty the caches of creation functions, because the default dtype has changed."""
    for function in creation_functions:
        function.generation += 1
        function.templates.age()  # drop the old generation
        function.templates.age()  # and the young one


def _key(
    args: tuple[Any, ...], options: dict[str, Any], exprs: list[Expr], creates: bool
) -> list[object] | None:
    """Return all that a result depends on besides element values; None if no key can describe it.

    The expressions of tensors are appended to `exprs`. No gradient flows through them. A creation
    function reads the values of tensors.
    """
    key: list[object] = [current().vendor_products]
    if creates and options.get("device") is None:  # the result is on the default device
        device = default_device()
        if device.opened is None:
            return None
        key.append(device)
    for a in args:
        if not _append_argument(a, key, exprs):
            return None
    for name, value in options.items():
        key.append(name)
        if type(value) is str and name in ("dtype", "device"):
            return None  # plugins give these names a meaning, and can be unregistered
        if not _append_argument(value, key, exprs):
            return None
    is_known = not exprs if creates else bool(exprs)
    return key if is_known else None


def _is_new(result: Tensor, exprs: list[Expr]) -> bool:
    """Return True if a result is neither one of these expressions nor a view of one."""
    e = expr_of(result)
    return e.op is not None or storage_of(e).pending not in (None, *exprs)


def _all_in_memory(exprs: list[Expr]) -> bool:
    """Return True if no input is pending.

    A pending input shares a storage with its views once they exist, which a template cannot repeat.
    """
    return all([e.op is None for e in exprs])


_PENDING = object()  # marks a pending input in a key
_REPEATED = object()  # precedes the position of an input that is an argument once more


def _append_argument(a: object, key: list[object], exprs: list[Expr]) -> bool:
    """Append an argument to `key`, a tensor to `exprs`, too; return False if impossible.

    The class of an argument comes first if the argument may be equal to one of another class, to
    the name of an option, or to another number of elements. An int stands for itself.
    """
    if is_strided(a):
        return _append_expr(expr_of(a), key, exprs)
    kind = type(a)
    if a is None or kind is int or kind is DType:
        key.append(a)
        return True
    key.append(kind)
    if kind is float:
        key.append(a.hex() if a == 0 else a)  # type: ignore[attr-defined]  # 0.0 == -0.0
        return a == a  # NaNs may differ in sign
    elif kind is tuple or kind is list:
        values: Any = a
        key.append(len(values))
        for value in values:
            if not _append_argument(value, key, exprs):
                return False
    else:
        key.append(a)
        return _is_comparable(a)
    return True


def _is_comparable(a: object) -> bool:
    """Return True if an option is equal only to options of the same meaning."""
    kind = type(a)
    if kind is Device:
        return a.opened is not None  # type: ignore[attr-defined]  # a Device
    return kind is bool or kind is str


def _append_expr(e: Expr, key: list[object], exprs: list[Expr]) -> bool:
    """Append a tensor's expression to the key and to `exprs`; return False if that is impossible.

    An expression with a gradient, or a view of a pending one, cannot be an input of a template.
    """
    if e.tape is not None or (e.op is None and storage_of(e).pending is not None):
        return False
    for position, other in enumerate(exprs):
        if other is e:
            key.append(_REPEATED)
            key.append(position)
            return True
        if e.op is None and other.op is None and other.storage is e.storage:
            return False  # two inputs share a storage: the source of a view is ambiguous
    exprs.append(e)
    key.append(e.spec)
    if e.op is not None:
        key.append(_PENDING)
    elif e.strides is not e.spec.strides:
        key.append(e.strides)
    return True
