"""A probe that measures the float arithmetic of a device, its compiler included.

Drivers do not say what their compilers rewrite. The probe runs operations and expressions on chosen
operands, and compares the bits with the interpreter's. One kernel has all of them as they are
written. Those with wrong bits run again with hidden operands and results (`ir.hidden_floats`), so
that the hardware does them; then with more and more floats hidden, until their bits are right.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..dtypes import DType, bool_, float32, float64, int32, int64
from ..errors import CompileError, DeviceError
from ..ir.builder import Kernel, KernelBuilder
from ..ir.float_bits import UNSIGNED_BY_ITEMSIZE
from ..ir.language import (
    Buffer,
    Value,
    bitcast,
    cast,
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
from ..ir.legalize import legalize
from ..ir.target import Capabilities
from . import diskcache
from .interface import Backend
from .limits import bind_within_limits
from .reference import interpret

Array = Any  # an ndarray
Rule = Callable[[Value, Value, Value], Value]
Rules = dict[str, Rule]
Right = dict[DType, dict[str, Array]]  # where a device gives the bits of each rule

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
_EXACT: dict[str, Any] = dict.fromkeys(
    ("exact_division", "fma", "fma64", "denormals", "nan"), True
) | {"algebra": "exact", "contraction": False}
_HIDING = {"algebra": "free"}
_ALGEBRAS = ("exact", "zeros", "free")
_SUMS: Rules = {"sum": lambda x, y, z: x, "sum of products": lambda x, y, z: x * y}
_SUMMANDS = 3
_EXPRESSIONS = FLOAT_EXPRESSIONS | _SUMS
_REWRITTEN = (*_COMPARISONS, *_EXPRESSIONS)  # the names of what compilers rewrite


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
    try:
        return _Probe(backend).measure()
    except _KernelNotAccepted:
        return backend.info.capabilities


class _KernelNotAccepted(Exception):
    """A kernel that the backend's `accepts` refuses; caught in `measure_floats`."""


class _Probe:
    """The rules and the operands of each dtype that a backend has."""

    def __init__(self, backend: Backend) -> None:
        self.backend, declared = backend, backend.info.capabilities
        self.floats = (float32, float64) if declared.float64 else (float32,)
        self.operands = {d: _floats(d) for d in self.floats}
        self.rules = {
            d: _OPERATIONS | _DIVISIONS | _CASTS[d] | _FMA | _EXPRESSIONS for d in self.floats
        }
        if declared.int64:
            self.operands[int64], self.rules[int64] = _integers(), _INTEGERS

    def measure(self) -> Capabilities:
        """Return the device's capabilities, with those of floats as measured."""
        try:
            plain = self._run(self.rules, {})
        except CompileError:  # the device may compile no fma
            without = {
                d: {n: r for n, r in rs.items() if n != "fma"} for d, rs in self.rules.items()
            }
            plain = self._run(without, {})
        wrong = {
            d: {n: self.rules[d][n] for n, ok in right.items() if not ok.all()}
            for d, right in plain.items()
        }
        rerun = self._run(wrong, _HIDING)
        hidden = {d: right | rerun.get(d, {}) for d, right in plain.items()}
        can = self._judge_operations(hidden)
        return replace(can, **self._find_level(wrong, hidden, can))

    def _judge_operations(self, hidden: Right) -> Capabilities:
        """Return capabilities with division, fma, denormals and NaN as measured.

        Raises: DeviceError for other operations, and for float64, of which all must be right.
        """
        if int64 in hidden:
            self._require(hidden, int64, _INTEGERS, "ordinary")
        exact = (*_OPERATIONS, *_CASTS[float32])
        self._require(hidden, float32, exact, "ordinary", "fma")
        exact_division = self._is_right(hidden, float32, _DIVISIONS, "ordinary", "ties")
        has_fma = self._is_right(hidden, float32, _FMA, "ordinary", "fma")
        exact += (*_DIVISIONS,) * exact_division + (*_FMA,) * has_fma
        can = replace(
            self.backend.info.capabilities,
            exact_division=exact_division,
            fma=has_fma,
            denormals=self._is_right(hidden, float32, exact, "tiny"),
            nan=self._is_right(hidden, float32, exact, "special"),
        )
        if float64 in hidden:
            exact = (*_OPERATIONS, *_DIVISIONS)
            self._require(hidden, float64, (*exact, *_CASTS[float64]), "ordinary", "ties")
            self._require(hidden, float64, exact, "special", "tiny")
            has_fma = self._is_right(hidden, float64, _FMA, "ordinary", "fma", "tiny")
            can = replace(can, fma64=None if has_fma == can.fma else has_fma)
        for d in self.floats:
            self._require(hidden, d, [n for n in _EXPRESSIONS if n not in _DIVIDING], "ordinary")
        return can

    def _find_level(
        self, wrong: Mapping[DType, Rules], hidden: Right, can: Capabilities
    ) -> dict[str, Any]:
        """Return the first of `_LEVELS` that is as exact as hiding all floats; the last if none is.

        - `wrong`: the rules that are not right as they are written.
        - `hidden`: where results are right if all floats are hidden from the compiler.
        """
        rules = {d: {n: r for n, r in wrong[d].items() if n in _REWRITTEN} for d in self.floats}
        limits = {name: getattr(can, name) for name in ("exact_division", "fma", "fma64")}
        for level in _LEVELS[:-1]:
            right = self._run(rules, limits | level)
            if all((ok | ~hidden[d][n]).all() for d in right for n, ok in right[d].items()):
                return level
        return _LEVELS[-1]

    def _is_right(self, right: Right, d: DType, names: Iterable[str], *sections: str) -> bool:
        """Return True if the device has these rules, right in these sections of the operands."""
        rows = self.operands[d][1]
        return all(n in right[d] and right[d][n][rows[s]].all() for n in names for s in sections)

    def _require(self, right: Right, d: DType, names: Iterable[str], *sections: str) -> None:
        """Raise DeviceError that names the first rule with wrong bits in these sections."""
        columns, rows = self.operands[d]
        for name, section in itertools.product(names, sections):
            wrong = np.flatnonzero(~right[d][name][rows[section]])
            if wrong.size:
                operands = [c[rows[section]][wrong[0]] for c in columns]
                info, shown = self.backend.info, ", ".join(map(str, operands))
                raise DeviceError(
                    f"probe_floats: {info.type} ({info.name}) must compute {name} of {d.name} "
                    f"exactly, got wrong bits for {shown}; declare nan=False and a companion, and "
                    "report the fault to the maker of the driver"
                )

    def _run(self, rules: Mapping[DType, Rules], fields: Mapping[str, Any]) -> Right:
        """Return where the device gives each rule's bits, or another NaN in place of one.

        - `fields`: the capabilities in which the kernel's device differs from `_EXACT`.
        """
        rules = {d: of_dtype for d, of_dtype in rules.items() if of_dtype}
        limit = self.backend.info.capabilities.plan_buffers
        if len(rules) > 1 and 0 < limit < _BUFFERS * len(rules):
            return {d: self._run({d: rules[d]}, fields)[d] for d in rules}
        if not rules:
            return {}
        kernel, arrays = _build_kernel(rules), list[Array]()
        for d, of_dtype in rules.items():
            copies = sum(n in _EXPRESSIONS for n in of_dtype) + 1
            arrays += [np.tile(c, copies) for c in self.operands[d][0]]
            arrays.append(np.zeros(len(of_dtype) * _ROWS, f"u{d.itemsize}"))
        ints = [_ROWS - _SUMMANDS, _ROWS]
        actual = [a.copy() for a in arrays]
        interpret(kernel, arrays, ints, [], ints[:1])
        self._launch(kernel, actual, ints, fields)
        return {
            d: dict(zip(of_dtype, _same_bits(d, *outs), strict=True))
            for (d, of_dtype), *outs in zip(rules.items(), actual[_OUT], arrays[_OUT], strict=True)
        }

    def _launch(
        self,
        kernel: Kernel,
        arrays: Sequence[Array],
        ints: Sequence[int],
        fields: Mapping[str, Any],
    ) -> None:
        """Run a kernel on the device, legalised for these capabilities."""
        backend = self.backend
        can = replace(backend.info.capabilities, **(_EXACT | dict(fields)))
        legal = legalize(kernel, can)
        if not backend.accepts(legal):
            raise _KernelNotAccepted
        view: Any = _BackendView(backend, can)
        handles = [backend.allocate(a.nbytes) for a in arrays]
        try:
            for handle, a in zip(handles, arrays, strict=True):
                backend.copy_in(handle, 0, a.view(np.uint8).data, None)
            launch = bind_within_limits(view, backend.compile(legal), ints, ints[:1])
            launch(tuple(x for handle in handles for x in (handle, 0)), (), None)
            for handle, a in zip(handles[_OUT], arrays[_OUT], strict=True):
                backend.copy_out(a.view(np.uint8).data, handle, 0, None)
        finally:
            for handle, a in zip(handles, arrays, strict=True):
                backend.free(handle, a.nbytes)


class _BackendView:
    """A backend with other capabilities."""

    def __init__(self, backend: Backend, capabilities: Capabilities) -> None:
        self._backend = backend
        self.info = replace(backend.info, capabilities=capabilities)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)


def _build_kernel(rules: Mapping[DType, Rules]) -> Kernel:
    """Build a kernel that stores the bits of each rule's result.

    Each expression has operands of its own: compilers fuse no product that others use, too. The
    operations share theirs.
    """
    b = KernelBuilder("float_probe")
    n, stride = b.int("n"), b.int("stride")
    i = b.axis(n)
    for d, of_dtype in rules.items():
        inputs = [b.buffer(f"{d.name}_x{k}", d, "r") for k in range(3)]
        bits = UNSIGNED_BY_ITEMSIZE[d.itemsize]
        out, block = b.buffer(f"{d.name}_out", bits, "w"), 0
        for position, (name, rule) in enumerate(of_dtype.items()):
            block += name in _EXPRESSIONS
            at = stride * (block if name in _EXPRESSIONS else 0) + i
            if name in _SUMS:
                of_row = partial(_evaluate, rule, inputs, at)
                (value,) = reduce_loop("add", 0, _SUMMANDS, of_row)
            else:
                value = _evaluate(rule, inputs, at)
            is_bool = value.dtype is bool_
            result = cast(value, bits) if is_bool else bitcast(value, bits)
            b.store(out, stride * position + i, result)
    return b.build()


def _evaluate(rule: Rule, inputs: Sequence[Buffer], at: Value, k: Value | int = 0) -> Value:
    """Return a rule's value of the operands `k` elements from those at an index."""
    return rule(*[load(x, at + k) for x in inputs])


def _same_bits(d: DType, actual: Array, expected: Array) -> Array:
    """Return, in a row for each rule, where bits are equal or both of a NaN."""
    same: Array = actual == expected
    if d is not int64:
        infinity = np.array(np.inf, d.name).view(expected.dtype)
        mask = expected.dtype.type(np.iinfo(expected.dtype).max >> 1)
        same |= ((actual & mask) > infinity) & ((expected & mask) > infinity)
    return same.reshape(-1, _ROWS)


# --- operands -------------------------------------------------------------------------------------

Operands = tuple[list[Array], dict[str, slice]]  # three columns, and the rows of each section
_ROWS = 1024 + 4 * 512 + _SUMMANDS
_BUFFERS = 4  # of a dtype: three operands and the results
_OUT = slice(_BUFFERS - 1, None, _BUFFERS)  # the results among the buffers of all dtypes


def _integers() -> Operands:
    """Return triples of int64 of all magnitudes."""
    rng, n = np.random.default_rng(1), _ROWS
    columns = [rng.integers(-(1 << 63), 1 << 63, n) >> rng.integers(0, 63, n) for _ in range(3)]
    return columns, {"ordinary": slice(0, n - _SUMMANDS)}


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
