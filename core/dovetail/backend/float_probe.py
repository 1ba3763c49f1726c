"""A probe that measures the float arithmetic of a device, its compiler included.

Drivers do not say what their compilers rewrite. The probe runs operations and expressions on chosen
operands, and compares the bits with the interpreter's. An operation runs with hidden operands and
results (`ir.hidden_floats`), so that the hardware does it; an expression as it is written, then
with more and more of its floats hidden, until its bits are right.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..dtypes import DType, bool_, float32, float64, int32, int64
from ..errors import CompileError, DeviceError
from ..ir.builder import Kernel, KernelBuilder
from ..ir.language import (
    Value,
    bitcast,
    cast,
    const,
    eq,
    floor,
    fma,
    load,
    ne,
    quo,
    reduce_loop,
    rint,
    sqrt,
    trunc,
    where,
)
from ..ir.legalize import UNSIGNED_BY_ITEMSIZE, legalize
from ..ir.target import Capabilities
from . import diskcache
from .interface import Backend
from .limits import bind_within_limits
from .reference import interpret

Array = Any  # an ndarray
Rule = Callable[[Value, Value, Value], Value]
Rules = dict[str, Rule]

FLOAT_FIELDS = ("exact_division", "fma", "fma64", "contraction", "algebra", "denormals", "nan")
"""The fields of `Capabilities` that the probe measures."""

FLOAT_EXPRESSIONS: Rules = {
    "multiply_add": lambda x, y, z: x * y + z,
    "multiply_subtract": lambda x, y, z: z - x * y,
    "sum_of_three": lambda x, y, z: (x + y) + z,
    "there_and_back": lambda x, y, z: (x + y) - x,
    "product_of_three": lambda x, y, z: (x * y) * z,
    "common_divisor": lambda x, y, z: x / z + y / z,
    "plus_zero": lambda x, y, z: x + 0.0,
    "times_zero": lambda x, y, z: x * 0.0,
    "minus_itself": lambda x, y, z: x - x,
    "plus_its_negative": lambda x, y, z: x + (-x),
    "product_minus_itself": lambda x, y, z: x * y - x * y,
    "negative_product": lambda x, y, z: -(x * y) + z,
    "common_factor": lambda x, y, z: x * y + x * z,
    "plus_two_constants": lambda x, y, z: (x + 1.5) + 2.7,
    "times_two_constants": lambda x, y, z: (x * 1.5) * 2.7,
    "twice_inverted": lambda x, y, z: 1.0 / (1.0 / x),
    "error_of_sum": lambda x, y, z: (x - ((x + y) - ((x + y) - x))) + (y - ((x + y) - x)),
}
"""Expressions whose bits change if a compiler fuses, reorders or cancels operations."""

_COMPARISONS: Rules = {
    "lt": lambda x, y, z: x < y,
    "le": lambda x, y, z: x <= y,
    "eq": lambda x, y, z: eq(x, y),
    "ne": lambda x, y, z: ne(x, y),
    "test for NaN": lambda x, y, z: ne(x, x),
}
_OPERATIONS: Rules = _COMPARISONS | {
    "add": lambda x, y, z: x + y,
    "sub": lambda x, y, z: x - y,
    "mul": lambda x, y, z: x * y,
    "neg": lambda x, y, z: -x,
    "trunc": lambda x, y, z: trunc(x),
    "floor": lambda x, y, z: floor(x),
    "rint": lambda x, y, z: rint(x),
    "cast to bool": lambda x, y, z: cast(x, bool_),
}
_DIVISIONS: Rules = {
    "div": lambda x, y, z: x / y,
    "sqrt": lambda x, y, z: sqrt(where(x < 0.0, -x, x)),
}
_CASTS: Mapping[DType, Rules] = {
    float32: {
        "cast from int32": lambda x, y, z: cast(bitcast(x, int32), float32),
        "cast to int32": lambda x, y, z: cast(where((x < 1e6) & (x > -1e6), x, 0.0), int32),
    },
    float64: {"cast to float32": lambda x, y, z: cast(cast(x, float32), float64)},
}
_FMA: Rules = {"fma": lambda x, y, z: fma(x, y, z)}
_DIVIDING = ("div", "sqrt", "common_divisor", "twice_inverted")
_INTEGERS: Rules = {
    "widening": lambda x, y, z: cast(cast(x, int32), int64) * 3 + y,
    "shifts": lambda x, y, z: (x << (y & 63)) ^ (x >> (z & 63)),
    "quotient": lambda x, y, z: quo(x, (y & 0xFFFFFFFFFF) + 1),
    "product": lambda x, y, z: x * y - z,
}
# The algebra and the contraction of compilers, those that hide fewest floats first.
_LEVELS: tuple[dict[str, Any], ...] = (
    {"algebra": "exact", "contraction": False},
    {"algebra": "exact", "contraction": True},
    {"algebra": "zeros", "contraction": False},
    {"algebra": "zeros", "contraction": True},
    {"algebra": "free", "contraction": False},
)
# An exact device whose compiler may rewrite all floats.
_HIDING: dict[str, Any] = dict.fromkeys(
    ("exact_division", "fma", "fma64", "denormals", "nan"), True
) | {"algebra": "free", "contraction": False}
_ALGEBRAS = ("exact", "zeros", "free")
_EXPRESSIONS: Rules = _COMPARISONS | FLOAT_EXPRESSIONS
_SUMS: Rules = {"sum": lambda x, y, z: x, "sum of products": lambda x, y, z: x * y}
_SUMMANDS = 3


def probe_floats(backend: Backend) -> Capabilities:
    """Return the device's capabilities, with those of floats as the probe measures them.

    `dovetail_open` gives the result to its backend, as the capabilities of `backend.info`. The disk
    cache keeps it under the device's fingerprint.

    - `backend`: an open backend, whose `info` has the capabilities to begin with.

    Raises: DeviceError that names an operation with wrong results, for which no field stands.
    """
    can, fingerprint = backend.info.capabilities, backend.info.fingerprint
    package, dtypes = Path(__file__).parents[1], sorted(d.name for d in can.dtypes)
    sources = [diskcache.source_digest(package / part) for part in ("backend", "ir")]
    key = f"float probe {sources} {dtypes} {replace(can, dtypes=frozenset())}"
    stored = diskcache.read(fingerprint, key)
    if stored is not None:
        return replace(can, **json.loads(stored))
    measured = measure_floats(backend)
    fields = {name: getattr(measured, name) for name in FLOAT_FIELDS}
    diskcache.write(fingerprint, key, json.dumps(fields).encode())
    return measured


def find_excessive_claims(declared: Capabilities, measured: Capabilities) -> list[str]:
    """Return the names of the fields in which a device declares more than the probe finds."""
    if not declared.nan:  # its companion does all arithmetic with floats
        return []
    names = [
        name
        for name in ("exact_division", "fma", "denormals", "nan", "has_fma64")
        if getattr(declared, name) and not getattr(measured, name)
    ]
    if _ALGEBRAS.index(declared.algebra) < _ALGEBRAS.index(measured.algebra):
        names.append("algebra")
    if measured.contraction and not declared.contraction and declared.algebra != "free":
        names.append("contraction")
    return names


def measure_floats(backend: Backend) -> Capabilities:
    """Return the device's capabilities, with those of floats measured; no cache is used.

    A backend that does not accept the probe's kernels has the capabilities that it declares.

    Raises: DeviceError that names an operation with wrong results, for which no field stands.
    """
    declared = backend.info.capabilities
    try:
        if declared.int64:
            integers = _Probe(backend, int64)
            integers.require(integers.right(_INTEGERS, {}), "ordinary")
        probes = [_Probe(backend, float32)]
        can = _measure_float32(probes[0], declared)
        if declared.float64:
            probes.append(_Probe(backend, float64))
            can = _measure_float64(probes[1], can)
        return replace(can, **_find_level(probes, can))
    except _KernelNotAccepted:
        return declared


class _KernelNotAccepted(Exception):
    """A kernel that the backend's `accepts` refuses; caught in `measure_floats`."""


def _measure_float32(probe: _Probe, declared: Capabilities) -> Capabilities:
    """Return capabilities with division, fma, denormals and NaN of float32 as measured."""
    right = probe.right(_OPERATIONS | _DIVISIONS | _CASTS[float32], {})
    division = {name: right[name] for name in _DIVISIONS}
    exact_division = probe.is_right(division, "ordinary", "ties")
    probe.require({n: ok for n, ok in right.items() if n not in _DIVIDING}, "ordinary", "fma")
    fused = probe.right_fma()
    has_fma = bool(fused) and probe.is_right(fused, "ordinary", "fma")
    judged = {name: right[name] for name in (*_OPERATIONS, *_CASTS[float32])}
    judged |= (division if exact_division else {}) | (fused if has_fma else {})
    return replace(
        declared,
        exact_division=exact_division,
        fma=has_fma,
        denormals=probe.is_right(judged, "tiny"),
        nan=probe.is_right(judged, "special"),
    )


def _measure_float64(probe: _Probe, can: Capabilities) -> Capabilities:
    """Return capabilities with the fma of float64 as measured; all else must be right."""
    right = probe.right(_OPERATIONS | _DIVISIONS | _CASTS[float64], {})
    probe.require(right, "ordinary", "ties")
    probe.require({n: right[n] for n in (*_OPERATIONS, *_DIVISIONS)}, "special", "tiny")
    fused = probe.right_fma()
    has_fma = bool(fused) and probe.is_right(fused, "ordinary", "fma", "tiny")
    return replace(can, fma64=None if has_fma == can.fma else has_fma)


def _find_level(probes: Sequence[_Probe], can: Capabilities) -> dict[str, Any]:
    """Return the first of `_LEVELS` at which expressions are right wherever hidden ones are."""
    limits = {name: getattr(can, name) for name in ("exact_division", "fma", "fma64")}
    for level in _LEVELS[:-1]:
        if all(probe.keeps_expressions(limits | level) for probe in probes):
            return level
    return _LEVELS[-1]


class _Probe:
    """The operands of a dtype on a backend, and the results that the interpreter gives."""

    def __init__(self, backend: Backend, dtype: DType) -> None:
        self.backend, self.dtype = backend, dtype
        self.columns, self.rows = _integers() if dtype is int64 else _floats(dtype)
        self._hidden: dict[str, Array] = {}  # where each expression of hidden floats is right

    def keeps_expressions(self, fields: Mapping[str, Any]) -> bool:
        """Return True if expressions are right on a device of such fields wherever they can be."""
        right = self.right(_EXPRESSIONS, fields, _SUMS)
        if all(bool(ok.all()) for ok in right.values()):
            return True
        if not self._hidden:
            self._hidden = self.right(_EXPRESSIONS, {}, _SUMS)
            exact = {n: ok for n, ok in self._hidden.items() if n not in _DIVIDING}
            self.require(exact, "ordinary")
        return all(bool((ok | ~self._hidden[name]).all()) for name, ok in right.items())

    def is_right(self, right: Mapping[str, Array], *sections: str) -> bool:
        """Return True if all rules are right in these sections of the operands."""
        return all(
            bool(ok[self.rows[section]].all()) for ok in right.values() for section in sections
        )

    def require(self, right: Mapping[str, Array], *sections: str) -> None:
        """Raise DeviceError that names the first rule with wrong bits in these sections."""
        for name, ok in right.items():
            for section in sections:
                wrong = np.flatnonzero(~ok[self.rows[section]])
                if wrong.size:
                    operands = [c[self.rows[section]][wrong[0]] for c in self.columns]
                    info, shown = self.backend.info, ", ".join(map(str, operands))
                    raise DeviceError(
                        f"probe_floats: {info.type} ({info.name}) must compute {name} of "
                        f"{self.dtype.name} exactly, got wrong bits for {shown}; declare nan=False "
                        "and a companion, and report the fault to the maker of the driver"
                    )

    def right_fma(self) -> dict[str, Array]:
        """Return where an fma is right; empty if the device compiles none."""
        try:
            return self.right(_FMA, {})
        except CompileError:
            return {}

    def right(
        self, rules: Rules, fields: Mapping[str, Any], sums: Rules | None = None
    ) -> dict[str, Array]:
        """Return where the device gives each rule's bits, or another NaN in place of one.

        - `fields`: the capabilities in which the kernel's device differs from `_HIDING`.
        """
        kernel = _build_kernel(rules, sums or {}, self.dtype)
        count = len(rules) + len(sums or {})
        columns = [np.tile(c, count) for c in self.columns]
        n = self.columns[0].size
        ints = [n - _SUMMANDS, n]
        expected = np.zeros(n * count, f"u{self.dtype.itemsize}")
        interpret(kernel, [*columns, expected], ints, [], ints[:1])
        actual = self._run(kernel, columns, ints, fields)
        same = actual == expected
        if self.dtype is not int64:
            infinity = np.array(np.inf, self.dtype.name).view(expected.dtype)
            mask = expected.dtype.type(np.iinfo(expected.dtype).max >> 1)
            same |= ((actual & mask) > infinity) & ((expected & mask) > infinity)
        return dict(zip((*rules, *(sums or {})), same.reshape(count, n), strict=True))

    def _run(
        self,
        kernel: Kernel,
        columns: Sequence[Array],
        ints: Sequence[int],
        fields: Mapping[str, Any],
    ) -> Array:
        """Return the results of a kernel on the device, legalised for these capabilities."""
        backend = self.backend
        can = replace(
            backend.info.capabilities,
            **(_HIDING | dict(fields)),
        )
        legal = legalize(kernel, can)
        if not backend.accepts(legal):
            raise _KernelNotAccepted
        view: Any = _BackendView(backend, can)
        out = np.zeros(columns[0].size, f"u{self.dtype.itemsize}")
        arrays = [*columns, out]
        handles = [backend.allocate(a.nbytes) for a in arrays]
        try:
            for handle, a in zip(handles, arrays, strict=True):
                backend.copy_in(handle, 0, a.view(np.uint8).data, None)
            launch = bind_within_limits(view, backend.compile(legal), ints, ints[:1])
            launch(tuple(x for handle in handles for x in (handle, 0)), (), None)
            backend.copy_out(out.view(np.uint8).data, handles[-1], 0, None)
        finally:
            for handle, a in zip(handles, arrays, strict=True):
                backend.free(handle, a.nbytes)
        return out


class _BackendView:
    """A backend with other capabilities."""

    def __init__(self, backend: Backend, capabilities: Capabilities) -> None:
        self._backend = backend
        self.info = replace(backend.info, capabilities=capabilities)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)


def _build_kernel(rules: Rules, sums: Rules, d: DType) -> Kernel:
    """Build a kernel that stores the bits of each rule's result, from operands of its own."""
    b = KernelBuilder("float_probe")
    inputs = [b.buffer(f"x{k}", d, "r") for k in range(3)]
    bits = UNSIGNED_BY_ITEMSIZE[d.itemsize]
    out = b.buffer("out", bits, "w")
    n, stride = b.int("n"), b.int("stride")
    i = b.axis(n)
    for position, rule in enumerate((*rules.values(), *sums.values())):
        at = stride * position + i

        def evaluate(k: Value, rule: Rule = rule, at: Value = at) -> Value:
            """Return the rule's value of the operands `k` elements from its first ones."""
            return rule(*[load(x, at + k) for x in inputs])

        if position < len(rules):
            value = evaluate(const(0, int64))
        else:
            (value,) = reduce_loop("add", 0, _SUMMANDS, evaluate)
        is_bool = value.dtype is bool_
        b.store(out, at, cast(value, bits) if is_bool else bitcast(value, bits))
    return b.build()


# --- operands -------------------------------------------------------------------------------------

Operands = tuple[list[Array], dict[str, slice]]  # three columns, and the rows of each section


def _integers() -> Operands:
    """Return 512 triples of int64 of all magnitudes."""
    rng = np.random.default_rng(1)
    columns = [rng.integers(-(1 << 63), 1 << 63, 512) >> rng.integers(0, 63, 512) for _ in range(3)]
    return columns, {"ordinary": slice(0, 512 - _SUMMANDS)}


def _floats(d: DType) -> Operands:
    """Return triples of floats for which wrong arithmetic shows.

    "ordinary": exponents near 0. "ties": near ties of quotients and roots. "fma": the last operand
    is the rounded product of the others, negated, or far from it. "tiny": denormal results and
    operands. "special": zeros, infinities, NaN, huge numbers.
    """
    rng = np.random.default_rng(1)
    digits, least = (24, -149) if d is float32 else (53, -1074)

    def power(low: int, high: int, n: int) -> Array:
        """Return numbers with exponents from `low` to `high`."""
        sign = rng.choice([-1.0, 1.0], n)
        return np.ldexp(sign * (1 + rng.random(n)), rng.integers(low, high + 1, n))

    def near_one(n: int) -> Array:
        """Return numbers of few bits more than 1."""
        return 1 + rng.integers(1, 1 << 20, n) * 2.0 ** (1 - digits)

    divisors, ratios = near_one(512), 1 + (2 * rng.integers(1, 1 << 20, 512) + 1) * 2.0**-digits
    numerators = np.where(np.arange(512) % 2, ratios * divisors, ratios * ratios)
    a, b = near_one(512), near_one(512)
    with np.errstate(over="ignore", under="ignore"):
        c = -(a.astype(d.name) * b.astype(d.name)).astype(np.float64)
        c[256:] = power(-70, 70, 256)
        half, lowest = least // 2, least + digits - 1
        huge = 3e37 if d is float32 else 1e307  # whose inverse is no denormal
        special = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, huge]
        grid = np.meshgrid(special, special, special)
        sections = {
            "ordinary": [power(-12, 11, 1024) for _ in range(3)],
            "ties": [numerators, divisors, divisors],
            "fma": [a, b, c],
            "tiny": [
                np.concatenate([power(half, half + 12, 256), power(least, lowest, 256)]),
                np.concatenate([power(half, half + 12, 256), power(-3, 3, 256)]),
                power(least, lowest, 512),
            ],
            "special": [g.ravel() for g in grid],
            "": [np.zeros(_SUMMANDS)] * 3,
        }
        columns = [
            np.concatenate([s[k] for s in sections.values()]).astype(d.name) for k in range(3)
        ]
    slices, start = {}, 0
    for name, (x, _, _) in sections.items():
        slices[name] = slice(start, start + x.size)
        start += x.size
    return columns, slices
