"""`dt.jit`: a function whose first call is noted, so that later ones replay it without Python."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import partial, update_wrapper
from inspect import Parameter, signature
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Generic,
    ParamSpec,
    Self,
    SupportsIndex,
    TypeVar,
    cast,
    overload,
)
from weakref import ref

import numpy as np

from ..argument_checks import flag, refused
from ..argument_checks import function as callable_
from ..compat.keywords import rebind_keywords
from ..decorated_functions import reduce_decorated
from ..engine import evaluate as run
from ..engine import tracer_api
from ..environment import warn_user
from ..errors import (
    ArgumentError,
    ArgumentTypeError,
    CaptureError,
    DovetailError,
    DovetailWarning,
    DTypeError,
)
from ..functions.datatypes import default_dtype_listeners, get_default_dtype
from ..graph.expr import storage_of
from ..locks import Lock
from ..lru_cache import LRUCache
from ..memory.tracing.stacktrace import caller_line
from ..settings import Settings, current
from ..tensor.c_fields import is_strided
from ..tensor.host import evaluate_leaf
from ..tensor.tensor import Tensor
from ..tracebacks import hide_internal_frames
from .closures import Closure, ClosurePath, read_modes
from .executable import CACHE_MISS, RecentExecutables
from .program import CapturedProgram
from .pytree import (
    SIMPLE,
    ArgumentContainers,
    FlatTree,
    StaticArgument,
    flatten_with_layouts,
    rebuild,
    require_static,
    require_strided_leaf,
)
from .session import Capture, CaptureFailure, CaptureSession, relax_overlaps
from .tracer import CapturesBusyError

__all__ = ["constant", "jit"]

ARGUMENT_KINDS_MAX = 128  # kinds of arguments with captures; the half that was used last stays
CAPTURE_TRIES_MAX = (
    3  # to capture a function that binds names to new tensors, as the first call of one may
)
RECENT_EXECUTABLES_MAX = 4  # captures that are tried without looking them up
FIXED_CAPTURES_MAX = 4  # captures of one kind for values that the function reads
WASTED_REPLAYS_MAX = 16  # given up at other values, more than calls that a replay has served
CAPTURES_PER_KIND_MAX = 16  # captures of one kind of arguments, which differ in the closure

P = ParamSpec("P")  # what the function takes
Rest = ParamSpec("Rest")  # but for the instance, where it is a method
R = TypeVar("R")
Instance = TypeVar("Instance")


_instances: set[ref[Captured[..., Any]]] = set()


class Captured(RecentExecutables, Generic[P, R]):
    """A function that is captured when it is called, and replayed when it is called again.

    Made by `dt.jit`. `captures` counts how often it was captured.

    >>> import dovetail as dt
    >>> f = dt.jit(lambda x: x * 2 + 1)
    >>> f(dt.ones(2)).tolist(), f.captures
    ([3.0, 3.0], 1)
    """

    closure_attributes = ("_function",)  # for other captures, which do not look into its own

    def __init__(
        self, function: Callable[P, R], static_argnames: frozenset[str], fullgraph: bool = False
    ) -> None:
        self.__name__ = type(function).__name__  # of what has no name itself
        update_wrapper(self, function)
        self._function = function
        self._fullgraph, self._has_warned = fullgraph, False
        self._static_names = static_argnames
        self._static_positions = _positions(function, static_argnames)
        self._captures: LRUCache[Hashable, list[Capture | CaptureFailure]] = LRUCache(
            ARGUMENT_KINDS_MAX
        )
        self._recent = ()
        # By kind: how often it changed what it leads to.
        self._tries: LRUCache[Hashable, int] = LRUCache(ARGUMENT_KINDS_MAX)
        self._wasted: LRUCache[Hashable, int] = LRUCache(ARGUMENT_KINDS_MAX)
        self._lock = Lock(waited=False)
        # By the keys of static arguments: paths of objects with modes that they lead to.
        self._modes: LRUCache[Hashable, list[ClosurePath]] = LRUCache(ARGUMENT_KINDS_MAX)
        self.captures = 0
        self._internal_names = frozenset((*vars(self), "_internal_names")) - {
            *_attributes(function)
        }
        _instances.add(ref(self, _instances.discard))

    @property
    def programs(self) -> list[tuple[str, CapturedProgram]]:
        """The programs by their arguments' descriptions, for `dt.explain`."""
        return _programs(self.list_captures())

    @property
    def user_attributes(self) -> set[str]:
        """The names of attributes that the function had, or that were set since."""
        return {*vars(self)} - self._internal_names

    def explain_captures(
        self, args: tuple[object, ...]
    ) -> tuple[list[tuple[str, CapturedProgram]], list[str]]:
        """Return (description, program) of stored captures for such arguments; failure reasons."""
        _, key = self._make_key(self._flat(args, {}), current())
        captures = self._captures.find(key) or ()
        reasons = [c.reason for c in captures if isinstance(c, CaptureFailure)]
        return _programs([c for c in captures if isinstance(c, Capture)]), reasons

    def list_captures(self) -> list[Capture]:
        """Return all captures that succeeded: kind by kind, the latest of a kind first."""
        captures_in_order = [c for captures in self._captures.entries().values() for c in captures]
        return [c for c in captures_in_order if isinstance(c, Capture)]

    def captures_for_context(self) -> list[Capture]:
        """Return the captures that calls would replay in this context, with this closure."""
        context, matching = _context(current()), list[Capture]()
        for key, captures in self._captures.entries().items():
            kind, modes = cast("tuple[tuple[Hashable, ...], object]", key)
            for c in [c for c in captures if isinstance(c, Capture)]:
                leaves = c.trace.leaves
                paths = self._modes.find(_static_keys(_statics(leaves))) or []
                if read_modes(paths) == modes and kind[: len(context)] == context:
                    matching += [c] if c.executable.inputs.read_closure(leaves) is not None else []
        return matching

    def __repr__(self) -> str:
        return f"<dt.jit of {self.__name__}, captured {self.captures} times>"

    def __reduce_ex__(self, protocol: SupportsIndex) -> str | tuple[object, ...]:
        """Pickle by the function and its options; the receiver captures anew."""
        return reduce_decorated(self, protocol, self._static_names, self._fullgraph)

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(
        self: Captured[Concatenate[Instance, Rest], R],
        instance: Instance,
        owner: type | None = None,
    ) -> _BoundCaptured[Rest, R]: ...
    def __get__(self, instance: object, owner: type | None = None) -> object:
        if instance is None:
            return self
        bound: _BoundCaptured[..., R] = _BoundCaptured(self, instance)
        return bound

    if TYPE_CHECKING:

        def __call__(self, *args: P.args, **options: P.kwargs) -> R: ...  # type: ignore[override]  # of the base, which takes any

    def _call_slow(
        self, args: tuple[object, ...], options: Mapping[str, object], settings: Settings
    ) -> R:
        """Replay a capture that matches, else run the function and capture it; return the result.

        In eager mode and with hooks of saved values the function runs without a capture.
        """
        result: R
        if settings.eager or settings.saved_value_hooks is not None:
            result = self._function(*args, **options)
            return result
        flat = self._flat(args, options)
        if flat.tree is not None:
            for executable in self._recent:
                result = executable.run(flat.leaves, flat.tree, settings)
                if result is not CACHE_MISS:
                    return result
        leaves, key = self._make_key(flat, settings)
        flat = FlatTree(leaves, flat.tree)
        call = partial(self._function, *args, **options)
        result = self._replay(flat, key, settings, call)
        if result is CACHE_MISS:
            with self._lock:  # others may have captured it meanwhile
                result = self._replay(flat, key, settings, call)
                if result is CACHE_MISS:
                    try:
                        result = self._capture_call(flat, key, settings, call)
                    except DovetailError as error:
                        hide_internal_frames(error)
                        raise
            if result is CACHE_MISS:  # without the lock, which other threads may wait for
                result = call()
        return result

    @property
    def _error_name(self) -> str:
        """ "dt.jit of NAME", with which error messages begin."""
        return f"dt.jit of {self.__name__}"

    def _flat(self, args: tuple[object, ...], options: Mapping[str, object]) -> FlatTree:
        """Flatten arguments, static ones wrapped. Raises: CaptureError for an unhashable static."""
        if self._static_names:
            name, names, positions = self._error_name, self._static_names, self._static_positions
            args = tuple(
                [
                    StaticArgument(require_static(name, a)) if i in positions else a
                    for i, a in enumerate(args)
                ]
            )
            options = {
                k: StaticArgument(require_static(name, v)) if k in names else v
                for k, v in options.items()
            }
        if not options and all(type(a) in SIMPLE for a in args):
            return FlatTree(args, None)
        return flatten_with_layouts((args, options))

    def _make_key(self, flat: FlatTree, settings: Settings) -> tuple[list[object], Hashable]:
        """Evaluate tensors, wrap statics; return (leaves, key).

        The key contains the modes of objects that the function leads to; their paths are stored.
        Raises: LayoutError for tensors of other layouts, CaptureError for unhashable leaves.
        """
        leaves, key = _key(self._error_name, flat, settings)
        statics = _statics(leaves)
        modes = self._modes.find(_static_keys(statics))
        if modes is None:
            closure = Closure([self._function], [(i, x.value) for i, x in statics])
            modes = self._set_modes(leaves, closure)
        return leaves, (key, read_modes(modes))

    def _set_modes(self, leaves: Sequence[object], closure: Closure) -> list[ClosurePath]:
        """Store and return the paths of objects with modes; drop the closure's other values."""
        modes = closure.modes()
        closure.drop_values()
        self._modes[_static_keys(_statics(leaves))] = modes
        return modes

    def _replay(
        self, flat: FlatTree, key: Hashable, settings: Settings, call: Callable[[], R]
    ) -> Any:
        """Replay a capture with this key; `call()` if its capture failed; else CACHE_MISS.

        A replayed capture becomes the most recent one.
        """
        wasted = self._wasted.find(key) or 0
        for capture in self._captures.find(key) or ():
            if isinstance(capture, CaptureFailure):
                return call()
            leaves = [*flat.leaves]
            for i, _ in capture.executable.inputs.floats:
                leaves[i] = float(leaves[i])  # which may be one of NumPy
            result: R = capture.executable.run(leaves, flat.tree, settings)
            if result is not CACHE_MISS:
                self._add_recent(capture)
                if capture.value_guards:
                    self._count_wasted(key, wasted - 1)
                return result
            wasted += capture.value_guards > 0
        return CACHE_MISS

    def _count_wasted(self, key: Hashable, count: int) -> None:
        """Store how many replays were given up more than succeeded; end captures at a limit."""
        self._wasted[key] = max(count, 0)
        if count > WASTED_REPLAYS_MAX:
            reason = "the values that it reads change in most calls"
            self._warn_of_read(reason)
            self._captures[key] = [CaptureFailure(reason)]

    def _capture_call(
        self, flat: FlatTree, key: Hashable, settings: Settings, call: partial[R]
    ) -> Any:
        """Run and record the function; store the capture or a final failure; return the result.

        Return CACHE_MISS if the function has not run and cannot be captured with these arguments.
        A retryable failure is stored only after `CAPTURE_TRIES_MAX` calls. Calls with the key of a
        stored failure run the function without a capture, with the containers of the caller.

        `call`: the function with its arguments.
        """
        containers = none = ArgumentContainers((), ())
        returned = cast("R", None)

        def find_containers() -> ArgumentContainers:
            """Return the containers among the arguments, with traced numbers."""
            traced = (leaves, {}) if flat.tree is None else rebuild(flat, leaves)
            return ArgumentContainers((call.args, call.keywords), traced)

        def trace() -> R:
            """Call the function with traced arguments."""
            nonlocal containers, returned
            containers = find_containers()  # in the trace, since tensors of layouts are rebuilt
            session.has_changed_arguments = containers.have_changed
            args, options = containers.arguments
            returned = self._function(*args, **options)
            return returned

        try:
            session = CaptureSession(
                self._error_name,
                self._function,
                flat.leaves,
                flat.tree,
                settings,
                None if self._fullgraph else self._warn_of_read,
                not self._fullgraph and self._count_fixed(flat, key) < FIXED_CAPTURES_MAX,
            )
            leaves = session.trace_arguments()
            reachable = {id(path.value) for path in session.closure.paths}
            if session.floats and find_containers().have_aliased_copy(reachable):
                self._warn_of_aliased_containers()
                return CACHE_MISS
            try:
                result, capture = session.run(trace)
            finally:
                containers.write_back()
            result = containers.original_of(returned, result)
        except CapturesBusyError as error:
            if self._fullgraph or containers is not none:  # a function that it calls waited
                raise
            warn_user(f"{self._error_name}: {error}; this call runs uncaptured", DovetailWarning)
            return CACHE_MISS
        except (DTypeError, ArgumentTypeError) as error:
            if "TracedFloat" in str(error):
                error.args = (
                    f"{error.args[0]}. A float argument has no value while a function is captured; "
                    "name it in static_argnames to get a Python number",
                    *error.args[1:],
                )
            raise
        if isinstance(capture, CaptureFailure) and capture.is_retryable:
            tries = self._tries[key] = (self._tries.find(key) or 0) + 1
            if tries < CAPTURE_TRIES_MAX:
                return result
        self._set_modes(flat.leaves, session.closure_after)  # there may be others than before
        before = self._captures.find(key) or []
        if isinstance(capture, Capture):
            self.captures += 1
            relax_overlaps(capture, [c for c in before if isinstance(c, Capture)])
            self._add_recent(capture)
        self._captures[key] = [capture, *before][:CAPTURES_PER_KIND_MAX]
        return result

    def _add_recent(self, capture: Capture) -> None:
        """Let the next calls try a capture first, unless it may run a part of its work in vain."""
        if not capture.value_guards:
            self._recent = (capture.executable, *self._recent)[:RECENT_EXECUTABLES_MAX]

    def _count_fixed(self, flat: FlatTree, key: Hashable) -> int:
        """Return how many captures of a kind are for certain values of floats or tensors."""
        floats = [i for i, x in enumerate(flat.leaves) if isinstance(x, float)]
        captures = [c for c in self._captures.find(key) or () if isinstance(c, Capture)]
        return sum(
            c.value_guards > 0 or any(type(c.trace.leaves[i]) is StaticArgument for i in floats)
            for c in captures
        )

    def _warn_of_aliased_containers(self) -> None:
        """Warn of copied containers with two names. Raises: CaptureError with fullgraph=True."""
        reason = "a list or dict with floats is an argument twice or has other names"
        if self._fullgraph:
            raise CaptureError(f"{self._error_name}: {reason}; pass a copy")
        self._warn_of_read(reason)

    def _warn_of_read(self, what: str) -> None:
        """Warn, once per function, that it reads values and therefore runs without a capture."""
        if not self._has_warned:
            self._has_warned = True
            text = (
                f"{self._error_name}: {what} at {caller_line()}, so the function runs without a "
                f"capture. {tracer_api.READ_ADVICE}, so that it is captured; fullgraph=True makes "
                "this an error"
            )
            warn_user(text, DovetailWarning)


def look_up_again() -> None:
    """Forget the recent executables of all captured functions; the next calls build their keys.

    The default dtype is a part of a key, and so are the modes of objects (`Closure.modes`).
    """
    for captured in [found() for found in list(_instances)]:
        if captured is not None:
            captured._recent = ()


default_dtype_listeners.append(look_up_again)


class _BoundCaptured(Generic[P, R]):
    """A captured function of a class, of one instance."""

    def __init__(self, captured: Captured[..., R], instance: object) -> None:
        self.__func__, self.__self__ = captured, instance

    def __call__(self, *args: P.args, **options: P.kwargs) -> R:
        return self.__func__(self.__self__, *args, **options)

    def __reduce__(self) -> tuple[object, ...]:
        return _BoundCaptured, (self.__func__, self.__self__)

    def __getattr__(self, name: str) -> object:
        return getattr(self.__func__, name)


def constant(x: Tensor, /) -> Tensor:
    """Return `x`, a tensor that captured functions may keep although no path leads to it.

    A captured function reads the tensors of its closure again at each call, where it has found
    them: in variables, attributes, lists, dicts. A tensor that comes from elsewhere (a ContextVar,
    a cache, a `__getitem__` of the user's) is a CaptureError, unless it is wrapped where the
    function gets it. Later calls read the memory of this tensor, also what was written there since;
    they do not notice if another tensor has taken its place.

    Shapes: any.
    Dtypes: all.
    Raises: ArgumentTypeError if an argument is not a tensor.
    See also: `jit`.

    >>> import dovetail as dt, functools
    >>> @functools.cache
    ... def table():
    ...     return dt.arange(3) * 10
    >>> f = dt.jit(lambda x: x + dt.constant(table()))
    >>> f(dt.ones(3)).tolist()
    [1.0, 11.0, 21.0]
    """
    if not is_strided(x):
        raise refused("constant", "x", "a tensor", x)
    if not tracer_api.is_batched(x._expr):
        tracer_api.keep_constant(storage_of(evaluate_leaf(x)))
        if (tracer := tracer_api.current()) is not None:
            tracer.record_constant(x)
    return x


def _programs(captures: Sequence[Capture]) -> list[tuple[str, CapturedProgram]]:
    """Return (description, program) of each capture, then of each backward program."""
    programs = [(c.arguments, c.trace.program) for c in captures]
    return programs + [
        (f"{c.arguments}, the way back", c.backward.program)
        for c in captures
        if c.backward is not None
    ]


def _statics(leaves: Sequence[object]) -> list[tuple[int, StaticArgument]]:
    """Return (position, leaf) of each StaticArgument."""
    return [(i, x) for i, x in enumerate(leaves) if type(x) is StaticArgument]


def _static_keys(statics: list[tuple[int, StaticArgument]]) -> Hashable:
    """Return the keys of static arguments, in order, as one tuple."""
    return tuple([x.key for _, x in statics])


def _attributes(function: object) -> Iterable[str]:
    """Return the names of a function's own attributes."""
    return getattr(function, "__dict__", ())


def _positions(function: Callable[..., object], names: frozenset[str]) -> frozenset[int]:
    """Return positions of parameters (none without a signature); raise ArgumentError for others.

    A function with `**options` takes any names.
    """
    if not names:
        return frozenset()
    try:
        parameters = signature(function).parameters
    except (TypeError, ValueError):
        return frozenset()
    takes_any = any(p.kind is Parameter.VAR_KEYWORD for p in parameters.values())
    unknown = sorted(names - {*parameters})
    if unknown and not takes_any:
        raise ArgumentError(
            f"jit: static_argnames must name parameters of the function, "
            f"{', '.join(parameters)}, got {', '.join(unknown)}"
        )
    return frozenset(i for i, n in enumerate(parameters) if n in names)


def _context(s: Settings) -> tuple[Hashable, ...]:
    """Return the settings, and the default dtype, that are part of the key of a capture."""
    autocast = frozenset(s.autocast.items())
    return s.grad, s.vendor_products, s.fast_math, s.device, autocast, get_default_dtype()


def _key(name: str, flat: FlatTree, s: Settings) -> tuple[list[object], Hashable]:
    """Evaluate tensors, wrap statics; return (leaves, key), the key without the modes of objects.

    Raises: LayoutError for tensors of other layouts, CaptureError for unhashable leaves.
    """
    leaves: list[object] = []
    key: list[Hashable] = [*_context(s), flat.tree]
    tensors = [require_strided_leaf(name, x) for x in flat.leaves if isinstance(x, Tensor)]
    run.evaluate([x._expr for x in tensors])
    for x in flat.leaves:
        if is_strided(x):
            e = evaluate_leaf(x)
            kind: Any = type(x)
            key += [kind, e.spec, e.strides]
            if e.tape is not None:
                key.append((True, x.is_leaf and x.grad is not None))
        elif isinstance(x, float):
            kind = np.float64 if isinstance(x, np.float64) else float
            x = kind(x)
            key.append(kind)
        else:
            if type(x) is not StaticArgument:
                x = StaticArgument(require_static(name, x))
            key.append(x.key)
        leaves.append(x)
    return leaves, tuple(key)


@overload
def jit(
    function: Callable[P, R], *, static_argnames: str | Iterable[str] = (), fullgraph: bool = False
) -> Captured[P, R]: ...
@overload
def jit(
    function: None = None, *, static_argnames: str | Iterable[str] = (), fullgraph: bool = False
) -> Callable[[Callable[P, R]], Captured[P, R]]: ...
def jit(
    function: Callable[P, R] | None = None,
    *,
    static_argnames: str | Iterable[str] = (),
    fullgraph: bool = False,
    **theirs: object,
) -> Captured[P, R] | Callable[[Callable[P, R]], Captured[P, R]]:
    """Return a captured form of `function`: later calls replay its work without running Python.

    The first call with tensors of new shapes, dtypes or devices runs the function and records its
    work on memory; later calls replay that, with the same bits. It can be a decorator, with or
    without arguments.

    What triggers a new capture: other shapes, dtypes, devices or strides of tensors; another value
    of an int, bool, string or other hashable argument; other constants or settings that the
    function reads from outside, and other modes of networks. Floats may change without a new one,
    unless Python code compares them: then a capture is for one value, and the fifth ends captures.
    Tensors that the function reads by names from outside are read again at each call.

    What is frozen at the capture: the rest of what Python does, such as `print`, counters and lists
    that the function appends to. Where the function needs a bool or an integer of a tensor
    (`if x.sum() > 0`, `int(n)`), the capture is for this value alone. A replay compares it; the
    fifth ends captures. A function that needs another value (`float(x)`, `print(x)`), or needs it
    after a write or a draw, runs without a capture, with one warning that names the line; write
    `dt.where` or `dt.cond`. So does one that changes a list or dict among its arguments.
    docs/jit.md has all rules.

    - `function`: takes and returns tensors, numbers and other hashable values, or containers of
      them. None gives a decorator.
    - `static_argnames`: the names of arguments that are static in any case, as a string or several;
      a float needs it if Python code compares it and `fullgraph` is True.
    - `fullgraph`: True raises a CaptureError where the function needs a value.

    Cost: a capture runs the function once, and plans and compiles what is new, so it takes longer
    than a plain call. `f.captures` counts the captures: if it grows at each call, pass the changing
    value as a float or in a tensor. The 64 kinds of arguments that were used last stay captured.
    Raises: ArgumentTypeError for other objects than functions, ArgumentError for unknown names. The
    returned function raises CaptureError if it cannot be captured.
    See also: `explain`, `scan`, `cond`, `save_function`, `constant`.

    >>> import dovetail as dt
    >>> @dt.jit
    ... def step(u, rate):
    ...     return u + rate * (1 - u)
    >>> u = dt.zeros(2)
    >>> for rate in (0.5, 0.25):
    ...     u = step(u, rate)
    >>> u.tolist(), step.captures
    ([0.625, 0.625], 1)
    """
    if theirs:
        return rebind_keywords(jit, locals())
    if isinstance(static_argnames, str):
        static_argnames = (static_argnames,)
    try:
        names = frozenset(static_argnames)
    except TypeError:
        raise refused(
            "jit", "static_argnames", "a name or a sequence of names of arguments", static_argnames
        ) from None
    if not all(isinstance(n, str) for n in names):
        raise refused(
            "jit", "static_argnames", "a name or a sequence of names of arguments", static_argnames
        )
    if function is None:
        return lambda f: jit(f, static_argnames=names, fullgraph=fullgraph)
    callable_("jit", function)
    return Captured(function, names, flag("jit", fullgraph, "fullgraph"))


def _compile_as_torch(function: Callable[P, R], *examples: object, **ignored: object) -> Any:
    """Return `jit(function)`, as `torch.jit.script` and `torch.jit.trace`, without examples."""
    return jit(function)


vars(jit).update(script=_compile_as_torch, trace=_compile_as_torch)
