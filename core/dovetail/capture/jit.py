"""`dt.jit`: a function whose work is noted the first time, and done again without Python's part."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import update_wrapper
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Self, TypeVar, overload
from weakref import ref

import numpy as np

from ..arguments import function as callable_
from ..arguments import refused
from ..engine import evaluate as run
from ..engine import recording
from ..errors import ArgumentError, ArgumentTypeError, DTypeError
from ..functions.datatypes import get_default_dtype, when_default_changes
from ..graph.expr import storage_of
from ..locks import Lock
from ..respelled import retold
from ..settings import Settings, current
from ..tensor.host import evaluated
from ..tensor.tensor import Tensor
from .closures import Closure, ClosurePath, read_modes
from .executable import MISS, Latest
from .program import Program
from .pytree import SIMPLE, Flat, Static, flattened_parts, rebuilt, static, strided_leaf
from .session import Capture, Failed, Session, freed

__all__ = ["constant", "jit"]

KINDS = 64  # of arguments, that a function is captured for; beyond, the oldest goes
TRIES = 3  # to capture a function that binds names to new tensors, as the first call of one may
LATEST = 4  # captures that are tried without looking them up
VARIANTS = 16  # captures of one kind of arguments, which differ in the closure

P = ParamSpec("P")  # what the function takes
Rest = ParamSpec("Rest")  # but for the instance, where it is a method
R = TypeVar("R")
Instance = TypeVar("Instance")


_every: set[ref[Captured[..., Any]]] = set()


class Captured(Latest, Generic[P, R]):
    """A function that is captured when it is called, and replayed when it is called again.

    Made by `dt.jit`. `captures` counts how often it was captured.

    >>> import dovetail as dt
    >>> f = dt.jit(lambda x: x * 2 + 1)
    >>> f(dt.ones(2, device="reference")).tolist(), f.captures
    ([3.0, 3.0], 1)
    """

    leads_to = ("_function",)  # for other captures, which do not look into its own

    def __init__(self, function: Callable[P, R], static_argnames: frozenset[str]) -> None:
        self.__name__ = type(function).__name__  # of what has no name itself
        update_wrapper(self, function)
        self._function = function
        self._static = static_argnames
        self._positions = _positions(function, static_argnames)
        self._captures: dict[Hashable, list[Capture | Failed]] = {}
        self._latest = ()
        self._tries: dict[Hashable, int] = {}  # how often it changed what it leads to
        self._lock = Lock(waited=False)
        self._modes: dict[
            Hashable, list[ClosurePath]
        ] = {}  # by the static arguments that lead to them
        self.captures = 0
        _every.add(ref(self, _every.discard))

    @property
    def programs(self) -> list[tuple[str, Program]]:
        """What is replayed for which arguments; what `dt.explain` shows."""
        return _programs(self.captured())

    def explained(self, args: tuple[object, ...]) -> tuple[list[tuple[str, Program]], list[str]]:
        """The same for arguments like these; and why it runs as always for such, where it does."""
        key = self._keyed(self._flat(args, {}), current())[1]
        found = self._captures.get(key, ())
        reasons = [c.reason for c in found if isinstance(c, Failed)]
        return _programs([c for c in found if isinstance(c, Capture)]), reasons

    def captured(self) -> list[Capture]:
        """Its captures, in order."""
        every = [c for found in self._captures.values() for c in found]
        return [c for c in every if isinstance(c, Capture)]

    def __repr__(self) -> str:
        return f"<dt.jit of {self.__name__}, captured {self.captures} times>"

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(
        self: Captured[Concatenate[Instance, Rest], R],
        instance: Instance,
        owner: type | None = None,
    ) -> _Bound[Rest, R]: ...
    def __get__(self, instance: object, owner: type | None = None) -> object:
        if instance is None:
            return self
        bound: _Bound[..., R] = _Bound(self, instance)
        return bound

    if TYPE_CHECKING:

        def __call__(self, *args: P.args, **options: P.kwargs) -> R: ...  # type: ignore[override]  # of `Latest`, which takes any

    def _called(
        self, args: tuple[object, ...], options: Mapping[str, object], settings: Settings
    ) -> R:
        result: R
        if settings.eager or settings.saving is not None:
            result = self._function(*args, **options)
            return result
        flat = self._flat(args, options)
        if flat.tree is not None:
            for call in self._latest:
                result = call.run(flat.leaves, flat.tree, settings)
                if result is not MISS:
                    return result
        return self._found(flat, settings)

    def _found(self, flat: Flat, settings: Settings) -> R:
        """What a call gives that none of the latest captures is for."""
        leaves, key = self._keyed(flat, settings)
        flat = Flat(leaves, flat.tree)
        result: R = self._known(flat, key, settings)
        if result is MISS:
            with self._lock:  # others may have captured it meanwhile
                result = self._known(flat, key, settings)
                if result is MISS:
                    result = self._capture(flat, key, settings)
        return result

    def _keyed(self, flat: Flat, settings: Settings) -> tuple[list[object], Hashable]:
        """The leaves, in memory, and what captures of them are found by."""
        leaves, key = _key(self._name, flat, settings)
        statics = _statics(leaves)
        modes = self._modes.get(tuple([x.key for x in statics]))
        if modes is None:
            modes = self._set_modes(statics, Closure([self._function, *(x.value for x in statics)]))
        return leaves, (key, read_modes(modes))

    def _set_modes(self, statics: list[Static], closure: Closure) -> list[ClosurePath]:
        """Keep the places of the modes of objects that are part of the key of a capture."""
        key = tuple([x.key for x in statics])
        if len(self._modes) >= KINDS and key not in self._modes:
            del self._modes[next(iter(self._modes))]
        modes = self._modes[key] = closure.modes()
        closure.forget()
        return modes

    def _known(self, flat: Flat, key: Hashable, settings: Settings) -> Any:
        """What a capture of arguments of this kind gives, or MISS."""
        for capture in self._captures.get(key, ()):
            if isinstance(capture, Failed):
                return self._run(flat, [x.value if type(x) is Static else x for x in flat.leaves])
            result: R = capture.call.run(flat.leaves, flat.tree, settings)
            if result is not MISS:
                self._latest = (capture.call, *self._latest)[:LATEST]
                return result
        return MISS

    def _run(self, flat: Flat, leaves: Sequence[object]) -> R:
        """The function itself, given the leaves of its arguments."""
        args, options = (leaves, {}) if flat.tree is None else rebuilt(flat, leaves)
        made: R = self._function(*args, **options)
        return made

    @property
    def _name(self) -> str:
        return f"dt.jit of {self.__name__}"

    def _flat(self, args: tuple[object, ...], options: Mapping[str, object]) -> Flat:
        if self._static:
            args = tuple(
                Static(static(self._name, a)) if i in self._positions else a
                for i, a in enumerate(args)
            )
            options = {
                k: Static(static(self._name, v)) if k in self._static else v
                for k, v in options.items()
            }
        if not options and all(type(a) in SIMPLE for a in args):
            return Flat(args, None)
        return flattened_parts((args, options))

    def _capture(self, flat: Flat, key: Hashable, settings: Settings) -> R:
        session = Session(self._name, [self._function], flat.leaves, flat.tree, settings)
        given = session.traced()
        try:
            result, capture = session.run(lambda: self._run(flat, given))
        except (DTypeError, ArgumentTypeError) as error:
            if "TracedFloat" in str(error):
                error.args = (
                    f"{error.args[0]}. A float argument of a captured function is no Python "
                    "number: name it in static_argnames to have its value",
                    *error.args[1:],
                )
            raise
        if isinstance(capture, Failed) and capture.once:
            tries = self._tries[key] = self._tries.get(key, 0) + 1
            if tries < TRIES:
                return result
        self.captures += isinstance(capture, Capture)
        self._set_modes(_statics(flat.leaves), session.after)  # there may be others than before
        if len(self._captures) >= KINDS and key not in self._captures:
            del self._captures[next(iter(self._captures))]
        before = self._captures.get(key, [])
        if isinstance(capture, Capture):
            freed(capture, [c for c in before if isinstance(c, Capture)])
        self._captures[key] = [capture, *before][:VARIANTS]
        if isinstance(capture, Capture):
            self._latest = (capture.call, *self._latest)[:LATEST]
        return result


def look_up_again() -> None:
    """Has captures found by their keys again.

    The default dtype is a part of a key, and so are the modes of objects (`Closure.modes`).
    """
    for captured in [found() for found in list(_every)]:
        if captured is not None:
            captured._latest = ()


when_default_changes.append(look_up_again)


class _Bound(Generic[P, R]):
    """A captured function of a class, of one instance."""

    def __init__(self, captured: Captured[..., R], instance: object) -> None:
        self.__func__, self.__self__ = captured, instance

    def __call__(self, *args: P.args, **options: P.kwargs) -> R:
        return self.__func__(self.__self__, *args, **options)

    def __getattr__(self, name: str) -> object:
        return getattr(self.__func__, name)


def constant(x: Tensor, /) -> Tensor:
    """Return `x`, a tensor that captured functions may keep although no path leads to it.

    A captured function reads the tensors of its closure again at each call, where it has found
    them: in variables, attributes, lists, dicts. A tensor that comes from elsewhere (a ContextVar,
    a cache, a `__getitem__` of the user's) is a CaptureError, unless it is wrapped where the
    function gets it. Later calls read the memory of this tensor, also what was written there since;
    they do not notice if another tensor has taken its place.
    Raises: ArgumentTypeError for what is no tensor.

    >>> import dovetail as dt, functools
    >>> @functools.cache
    ... def table():
    ...     return dt.arange(3, device="reference") * 10
    >>> f = dt.jit(lambda x: x + dt.constant(table()))
    >>> f(dt.ones(3, device="reference")).tolist()
    [1.0, 11.0, 21.0]
    """
    if type(x) is not Tensor:
        raise refused("constant", "x", "a tensor", x)
    if not recording.batches(x._expr):
        recording.keep_constant(storage_of(evaluated(x)))
    return x


def _programs(captures: Sequence[Capture]) -> list[tuple[str, Program]]:
    found = [(c.arguments, c.program) for c in captures]
    backs = [(c.arguments, c.flow.program) for c in captures if c.flow is not None]
    return found + [(f"{arguments}, the way back", program) for arguments, program in backs]


def _statics(leaves: Sequence[object]) -> list[Static]:
    return [x for x in leaves if type(x) is Static]


def _positions(function: Callable[..., object], names: frozenset[str]) -> frozenset[int]:
    """Where arguments of these names stand. Raises: ArgumentError for a name that is none."""
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
            f"jit: static_argnames has {', '.join(unknown)}, of which the function takes none; it "
            f"takes {', '.join(parameters)}"
        )
    return frozenset(i for i, n in enumerate(parameters) if n in names)


def _key(name: str, flat: Flat, s: Settings) -> tuple[list[object], Hashable]:
    """The leaves, in memory, and what captures of them are found by."""
    leaves: list[object] = []
    key: list[Hashable] = [s.grad, s.reproducible, s.device, get_default_dtype(), flat.tree]
    pending: list[Tensor] = []
    for x in flat.leaves:
        if type(x) is Tensor:
            e = x._expr
            if e.op is not None or e.storage.pending is not None:
                pending.append(x)
        elif isinstance(x, Tensor):
            strided_leaf(name, x)
    if pending:
        run.evaluate([x._expr for x in pending])
        for x in pending:
            evaluated(x)
    for x in flat.leaves:
        if type(x) is Tensor:
            e = x._expr
            key.append(e.spec)
            key.append(e.strides)
            if e.tape is not None:
                key.append((True, x.is_leaf and x.grad is not None))
        elif isinstance(x, float):
            x = float(x)
            key.append(float)
        else:
            if isinstance(x, np.floating):
                x = float(x)
                leaves.append(x)
                key.append(float)
                continue
            if type(x) is not Static:
                x = Static(static(name, x))
            key.append(x.key)
        leaves.append(x)
    return leaves, tuple(key)


@overload
def jit(
    function: Callable[P, R], *, static_argnames: str | Iterable[str] = ()
) -> Captured[P, R]: ...
@overload
def jit(
    function: None = None, *, static_argnames: str | Iterable[str] = ()
) -> Callable[[Callable[P, R]], Captured[P, R]]: ...
def jit(
    function: Callable[P, R] | None = None,
    *,
    static_argnames: str | Iterable[str] = (),
    **theirs: object,
) -> Captured[P, R] | Callable[[Callable[P, R]], Captured[P, R]]:
    """A function that does what `function` does, captured: later calls take Python's part away.

    The first call with tensors of new shapes, dtypes or devices runs as always, while what it does
    to memory is noted; later ones do that again, with the same bits. Arguments and results are
    tensors, or containers of them; ints, bools, strings and other hashable values are static: for
    each value there is a capture. Floats may change without one. `static_argnames`: names of
    arguments that are static whatever they are. It can be a decorator, with or without arguments.
    docs/jit.md has the rules.
    Raises: ArgumentTypeError for what is no function, ArgumentError for names that it does not
    have. The function it gives raises CaptureError for what cannot be captured.

    >>> import dovetail as dt
    >>> @dt.jit
    ... def step(u, rate):
    ...     return u + rate * (1 - u)
    >>> u = dt.zeros(2, device="reference")
    >>> for rate in (0.5, 0.25):
    ...     u = step(u, rate)
    >>> u.tolist(), step.captures
    ([0.625, 0.625], 1)
    """
    if theirs:
        return retold(jit, locals())
    if isinstance(static_argnames, str):
        static_argnames = (static_argnames,)
    try:
        names = frozenset(static_argnames)
    except TypeError:
        raise refused("jit", "static_argnames", "names of arguments", static_argnames) from None
    if not all(isinstance(n, str) for n in names):
        raise refused("jit", "static_argnames", "names of arguments", static_argnames)
    if function is None:
        return lambda f: jit(f, static_argnames=names)
    callable_("jit", function)
    return Captured(function, names)
