"""The layout under test: each op on its tensors is compared with the op on strided ones.

The tensors are made from samples.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..device_class import Device, device
from ..dtypes import DType, bfloat16, float32
from ..errors import DeviceError, DovetailError, DTypeError, LayoutError
from ..layout import Shape, strided
from ..plugins.plugin_state import PluginRecord, PluginState
from ..tensor import tensor as T
from ..tensor.c_fields import is_strided
from ..tensor.host import from_host
from ..tensor.layout_registry import registry
from ..tensor.other_layouts import LayoutInfo, LayoutTensor
from .kit import REFERENCE, Kit, differences, host
from .values import Array, host_dtype, round_to_dtype, specials

Function = Callable[..., Any]

# Errors name the outermost function of dovetail that the user called.
call_as_user = eval("lambda f, *operands: f(*operands)", {"__package__": ""})
# Verbs whose results may have a shape, or an order, that only a related layout holds.
RELATED_LAYOUT_VERBS = ("view", "index", "concat", "diagonal")
ADVICE_PATTERN = re.compile(r"to_dense\(|x\.to\w*\(|\b(see|use|convert) ")


class UndeclaredRefusal(AssertionError):
    """The layout has a rule, which raised LayoutError; a declared gap may do so."""


class ValuesDiffer(AssertionError):
    """A result has other values than the strided one.

    In a declared gap the layout may give the op another meaning.
    """


# --- samples -------------------------------------------------------------------------------------


def diagonal_offsets(shape: Shape) -> Array:
    """Return row minus column, over the last two axes."""
    rows, columns = np.indices(shape[-2:])
    difference: Array = rows - columns
    return difference


MASKS: dict[str, Callable[[Shape, np.random.Generator], Array]] = {
    "full": lambda shape, rng: np.ones(shape, bool),
    "scattered": lambda shape, rng: rng.random(shape) < 0.3,
    "nothing": lambda shape, rng: np.zeros(shape, bool),
    "diagonal": lambda shape, rng: np.broadcast_to(diagonal_offsets(shape) == 0, shape),
    "upper": lambda shape, rng: np.broadcast_to(np.triu(np.ones(shape[-2:], bool)), shape),
    "band": lambda shape, rng: np.abs(diagonal_offsets(shape)) < 2,
}


@dataclass(frozen=True)
class Sample:
    """An array to hold in the layout: a shape, and a mask of the elements that are not zero."""

    mask: str
    shape: Shape

    def __str__(self) -> str:
        return f"{self.mask} {'x'.join(map(str, self.shape)) or '0-d'}"

    def where(self, seed: int = 0) -> Array:
        """Return the mask of elements that are not zero."""
        return np.asarray(MASKS[self.mask](self.shape, np.random.default_rng(seed)))

    def array(self, d: DType, seed: int = 0, pattern: int | None = None) -> Array:
        """Return small whole numbers, with exact sums and products, and zeros outside the mask."""
        rng = np.random.default_rng(seed + 1)
        numbers = {"b": (1,), "u": (1, 2, 3)}.get(d.kind, (-3, -2, -1, 1, 2, 3))
        values = round_to_dtype(rng.choice(np.array(numbers, np.float64), self.shape), d)
        return np.where(
            self.where(seed if pattern is None else pattern), values, host_dtype(d).type(0)
        )

    def special(self, d: DType, seed: int = 0) -> Array:
        """Return the special values of a dtype except zeros, because zeros are not stored."""
        some = specials(d)
        some = some[~is_zero(some, d)]
        values = np.random.default_rng(seed + 1).choice(some, self.shape)
        return np.where(self.where(), values, host_dtype(d).type(0))

    def small_factors(self, d: DType, seed: int = 0) -> Array:
        """Return 1, -1 and 2, whose products are exact."""
        numbers = {"b": (1,), "u": (1, 2)}.get(d.kind, (-1, 1, 2))
        rng = np.random.default_rng(seed + 1)
        values = round_to_dtype(rng.choice(np.array(numbers, np.float64), self.shape), d)
        return np.where(self.where(seed), values, host_dtype(d).type(0))


SHAPES: tuple[Shape, ...] = ((), (5,), (6, 6), (4, 7), (3, 4, 5), (1, 1), (0,), (0, 4), (61, 47))
SQUARE, OBLONG, CUBE = (6, 6), (4, 7), (3, 5, 5)
SAMPLES = (
    *(Sample(mask, shape) for mask in ("full", "scattered", "nothing") for shape in SHAPES),
    *(Sample(mask, s) for mask in ("diagonal", "upper", "band") for s in (SQUARE, OBLONG)),
    *(Sample(mask, CUBE) for mask in ("diagonal", "upper")),
)
# The samples that ops are tried on, without those that a layout does not hold.
BASIC_SAMPLES = (
    Sample("scattered", OBLONG),
    Sample("full", SQUARE),
    Sample("diagonal", SQUARE),
    Sample("upper", SQUARE),
    Sample("nothing", SQUARE),
)
VARIED_SAMPLES = (
    *BASIC_SAMPLES,
    Sample("scattered", ()),
    Sample("full", ()),
    Sample("scattered", (5,)),
    Sample("scattered", (3, 4, 5)),
    Sample("scattered", (0, 4)),
    Sample("diagonal", OBLONG),
    Sample("diagonal", CUBE),
)


def is_zero(values: Array, d: DType) -> Array:
    """Return True at values that are zero, of either sign."""
    return np.asarray((values & 0x7FFF) == 0 if d is bfloat16 else values == 0)


def unsigned_zeros(values: Array, d: DType) -> Array:
    """Return the values with every zero positive: a zero that is not stored has no sign."""
    return np.where(is_zero(values, d), host_dtype(d).type(0), values)


# --- the layout ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class LayoutSubject:
    """A layout under test, with its own description."""

    info: LayoutInfo
    record: PluginRecord
    gaps: Mapping[str, str]
    accepted_samples: dict[tuple[Sample, DType, Device], bool] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Return the layout's name."""
        return self.info.layout.name

    def make(self, x: T.Tensor) -> Any:
        """Return a strided tensor's elements in this layout."""
        assert self.info.from_dense is not None
        return self.info.from_dense(x)

    def accepts(self, sample: Sample, d: DType, on: Device) -> bool:
        """Return False if the layout refuses a sample with LayoutError or DTypeError; cached."""
        key = (sample, d, on)
        if key not in self.accepted_samples:
            try:
                self.make(from_host(sample.array(d), d, on))
            except (LayoutError, DTypeError):
                self.accepted_samples[key] = False
            except Exception:  # a case will show it
                self.accepted_samples[key] = True
            else:
                self.accepted_samples[key] = True
        return self.accepted_samples[key]

    def accepts_case(self, params: Mapping[str, object], on: Device) -> bool:
        """Return True if the layout holds the samples and dtypes of a case."""
        dtypes = [p for p in params.values() if isinstance(p, DType)] or [float32]
        samples = [p for p in params.values() if isinstance(p, Sample)]
        if samples:
            return all(self.accepts(s, d, on) for s in samples for d in dtypes)
        return all(any(self.accepts(s, d, on) for s in SAMPLES) for d in dtypes)


def load_layout_subject(name: str) -> LayoutSubject:
    """Return the layout of this name, as its plugin describes it.

    Raises: DeviceError where there is none, PluginError where it cannot be used, LayoutError
    without `from_dense`.
    """
    record = registry.records().get(name)
    if record is None:
        installed = ", ".join(registry.records())
        raise DeviceError(f"no layout {name!r} is installed; known: {installed}")
    registry.probe(name)
    if record.state is not PluginState.OPEN:
        raise record.error()
    info = next(i for i in registry.infos() if i.layout.name == name)
    if info.from_dense is None:
        raise LayoutError(
            f"the layout {name} has no from_dense: give its LayoutInfo one, with which the kit can "
            "make tensors of it"
        )
    return LayoutSubject(info, record, registry.call(record, "dovetail_conformance") or {})


@dataclass
class LayoutKit(Kit):
    """One case's view of the layout, on one device."""

    subject: LayoutSubject = field(kw_only=True)
    is_reference_checked: bool = (
        False  # with the reference: once a case, the interpreter being slow
    )

    @property
    def name(self) -> str:
        """Return the layout's name."""
        return self.subject.name

    def samples(
        self, candidates: Sequence[Sample] = BASIC_SAMPLES, d: DType = float32
    ) -> list[Sample]:
        """Return those of the candidates that the layout accepts at `d` on the kit's device."""
        return [s for s in candidates if self.subject.accepts(s, d, self.device)]

    def put(self, values: Array, d: DType, on: Device | None = None) -> tuple[Any, T.Tensor]:
        """Return an array as a tensor in the layout and as a strided one."""
        x = from_host(values, d, on or self.device)
        return self.subject.make(x), x

    def has_rule(self, verb: str) -> bool:
        """Return True if the layout has a rule for a verb."""
        s = next(s for s in SAMPLES if self.subject.accepts(s, float32, self.device))
        return verb in self.put(s.array(float32), float32)[0].rules

    # --- comparing

    def check_rule(
        self,
        verb: str,
        name: str,
        f: Function,
        operands: Sequence[tuple[Array, DType, bool]],
        what: str,
    ) -> None:
        """Fail unless `f` gives the same for operands in the layout (True) as for strided ones.

        If the layout has no rule for the verb, it must refuse it.
        """
        ruled, plain = self.make_operands(operands, self.device)
        if verb not in _find_rules(ruled):
            self.check_refusal(name, what, f, *ruled)
            return
        wanted = _call_outcome(f, plain)
        with self.on_device(what):
            actual = _call_outcome(f, ruled)
            if isinstance(actual, T.Tensor):
                self.check_parts(actual, what)
                values = host(dense(actual))
        if isinstance(actual, DovetailError):
            self._check_error(actual, wanted, name, what)
            return
        assert not isinstance(wanted, DovetailError), self.failure(
            f"{what}: gave a result, where a strided tensor raises {wanted!r}", ""
        )
        self._check_metadata(actual, wanted, verb, what)
        self._check_reference_bits(f, actual, operands, what)
        self.equal(values, host(wanted), wanted.dtype, what)

    def make_operands(
        self, operands: Sequence[tuple[Array, DType, bool]], on: Device
    ) -> tuple[list[T.Tensor], list[T.Tensor]]:
        """Return the operands, those marked True in the layout, and then all of them strided."""
        pairs = [
            self.put(v, d, on) if ours else (None, from_host(v, d, on)) for v, d, ours in operands
        ]
        return [y if x is None else x for x, y in pairs], [y for _, y in pairs]

    def _check_error(self, error: DovetailError, wanted: object, name: str, what: str) -> None:
        """Fail unless the strided error is alike; raise UndeclaredRefusal for LayoutError."""
        if isinstance(error, LayoutError):
            self.check_message(error, name, what)
            raise UndeclaredRefusal(
                self.failure(f"{what}: refused, and no declared gap: {error}", "")
            )
        assert type(error) is type(wanted), self.failure(
            f"{what}: raises {error!r}, where a strided tensor gives {_describe(wanted)}", ""
        )
        self.comparisons += 1

    def _check_metadata(self, actual: Any, wanted: T.Tensor, verb: str, what: str) -> None:
        """Fail unless dtype, shape and device are those of `wanted`, and the layout is allowed."""
        keeps_layout = verb in self.subject.info.keeps
        for part in ("dtype", "shape", "device"):
            a, b = getattr(actual, part), getattr(wanted, part)
            assert a == b, self.failure(f"{what}: {part} {a}, not {b}", "")
        related = (
            actual.related
            if verb in RELATED_LAYOUT_VERBS and isinstance(actual, LayoutTensor)
            else ()
        )
        layouts = (self.subject.info.layout, *related, *(() if keeps_layout else (strided,)))
        assert actual.layout in layouts, self.failure(
            f"{what}: a result of layout {actual.layout.name}, and {verb} keeps {self.name}", ""
        )

    def _check_reference_bits(
        self, f: Function, actual: Any, operands: Sequence[tuple[Array, DType, bool]], what: str
    ) -> None:
        """Fail unless all stored bits are the reference's; compare once a case."""
        if self.is_reference_checked or str(self.device) == str(device(REFERENCE)):
            return
        self.is_reference_checked = True
        theirs = f(*self.make_operands(operands, device(REFERENCE))[0])
        for k, (a, b) in enumerate(zip(parts(actual), parts(theirs), strict=True)):
            self.check_same_bits(host(a), host(b), a.dtype, f"{what}, part {k}", str)

    def equal(self, actual: Array, wanted: Array, d: DType, what: str) -> None:
        """Raise ValuesDiffer unless the values have the same bits; zeros, and NaNs, are equal."""
        self.comparisons += 1
        x, y = unsigned_zeros(actual, d), unsigned_zeros(wanted, d)
        assert x.shape == y.shape, self.failure(f"{what}: {x.shape}, not {y.shape}", "")
        wrong = differences(x, y, d)
        if wrong.size:
            pick = wrong[:5]
            shown = f"{x.reshape(-1)[pick]} instead of {y.reshape(-1)[pick]}"
            text = f"{what}: {wrong.size} of {x.size} differ; at {pick.tolist()}: {shown}"
            raise ValuesDiffer(self.failure(text, ""))

    def check_parts(self, x: T.Tensor, what: str) -> None:
        """Fail unless a tensor is strided, or its parts are strided tensors on its device."""
        if is_strided(x):
            return
        assert isinstance(x, LayoutTensor), self.failure(f"{what}: {type(x).__name__}", "")
        assert type(x.shape) is tuple, self.failure(f"{what}: shape {x.shape!r}", "")
        for part in x.parts:
            there = is_strided(part) and part.device is x.device
            assert there, self.failure(f"{what}: a part {_describe(part)} of {_describe(x)}", "")
        assert x.nbytes == sum(p.nbytes for p in x.parts), self.failure(f"{what}: nbytes", "")

    # --- errors

    def check_refusal(self, name: str, what: str, f: Function, *operands: object) -> None:
        """Fail unless a call raises a LayoutError that names the op and a way out."""
        try:
            result = call_as_user(f, *operands)
        except LayoutError as error:
            self.check_message(error, name, what)
            self.comparisons += 1
            return
        except Exception as error:
            raise AssertionError(
                self.failure(f"{what}: raises {error!r} and not LayoutError", "")
            ) from error
        text = (
            f"{what}: gave {_describe(result)}, where the layout has no rule, or no memory to write"
        )
        raise AssertionError(self.failure(text, ""))

    def check_message(self, error: DovetailError, name: str, what: str) -> None:
        """Fail unless a message begins with the op's name and ends with a way out."""
        text = str(error)
        first = re.match(r"[\w.]+", text)
        named = first is not None and first[0].rpartition(".")[2] in (name, *name.split("|"))
        assert named, self.failure(f"{what}: an error that does not begin with {name}: {text}", "")
        assert ADVICE_PATTERN.search(text), self.failure(
            f"{what}: an error without a way out: {text}", ""
        )

    def check_same_error(
        self, name: str, f: Function, operands: Sequence[tuple[Array, DType, bool]], what: str
    ) -> None:
        """Fail unless a wrong call raises the strided error's type, or LayoutError, with `name`."""
        ruled, plain = self.make_operands(operands, self.device)
        wanted, actual = _call_outcome(f, plain), _call_outcome(f, ruled)
        assert isinstance(wanted, DovetailError), f"{what} is no mistake: the kit's own"
        assert isinstance(actual, DovetailError), self.failure(
            f"{what}: gave {_describe(actual)}, where a strided tensor raises {wanted!r}", ""
        )
        alike = isinstance(actual, (type(wanted), LayoutError))
        assert alike, self.failure(f"{what}: {actual!r}, where a strided one raises {wanted!r}", "")
        assert name in str(actual), self.failure(f"{what}: an error without its name: {actual}", "")
        self.comparisons += 1


def dense(x: Any) -> T.Tensor:
    """Return a result as a strided tensor, converted by `to_dense` if need be."""
    tensor: T.Tensor = x if is_strided(x) else x.to_dense()
    return tensor


def parts(x: Any) -> tuple[T.Tensor, ...]:
    """Return the strided tensors that store a result: the tensor itself, or its parts."""
    return (x,) if is_strided(x) else x.parts


def part_bits(x: Any) -> list[Array]:
    """Return the bits of all parts of a tensor."""
    return [host(p) for p in parts(x)]


def _find_rules(operands: Sequence[object]) -> Mapping[str, object]:
    """Return the rules of the first operand that is a LayoutTensor."""
    return next(x.rules for x in operands if isinstance(x, LayoutTensor))


def _call_outcome(f: Function, operands: Sequence[object]) -> Any:
    """Call `f` as a user would, and return the result or the DovetailError."""
    try:
        return call_as_user(f, *operands)
    except DovetailError as error:
        return error


def _describe(x: object) -> str:
    """Return type and layout of a tensor, or the first 120 characters of another object's repr."""
    return f"{type(x).__name__} {x.layout.name}" if isinstance(x, T.Tensor) else repr(x)[:120]
