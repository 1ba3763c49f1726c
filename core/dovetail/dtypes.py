"""Dtypes: number formats and their promotion. Nothing here needs a tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from . import callbacks
from .argument_checks import shown
from .compat import hints
from .errors import DovetailError, DTypeError
from .records import DTypeRecord

__all__ = [
    "DType",
    "bfloat16",
    "bool_",
    "complex64",
    "complex128",
    "float16",
    "float32",
    "float64",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]


# Attributes that a dtype has in NumPy: its letter, its code, its scalar type, and more.
_NUMPY_ATTRIBUTES = {
    "alignment",
    "base",
    "byteorder",
    "char",
    "fields",
    "flags",
    "hasobject",
    "isbuiltin",
    "isnative",
    "metadata",
    "names",
    "ndim",
    "newbyteorder",
    "num",
    "shape",
    "str",
    "subdtype",
    "type",
}


class DType(DTypeRecord):
    """One kind of number, such as `dt.float32`; instances are unique, so `is` compares them.

    It also equals the other values that `dtype=` accepts for it: its name, NumPy's dtype or scalar
    type. Its hash is that of its name, so sets and dicts of names find it; NumPy's have other
    hashes.
    Further attributes are `compute` (the dtype of computations: float32 for floats of reduced
    precision, else itself), `part` (the dtype of a complex number's real and imaginary parts, else
    itself), `__numpy_dtype__` (None for bfloat16 and those of plugins, which NumPy lacks).

    - `name`: the name, such as "float32".
    - `code`: the code in kernel texts, such as "f32".
    - `kind`: "b" for bool, "i" and "u" for integers, "f" for floats, "c" for complex numbers.
    - `itemsize`: the size of an element in bytes.
    - `in_numpy`: True if NumPy has the dtype under this name.

    >>> import dovetail as dt
    >>> dt.float32.name, dt.float32.itemsize, dt.float32.is_float
    ('float32', 4, True)
    >>> dt.float32 == "float32", dt.float32 in {"float32", "float64"}
    (True, True)
    """

    __slots__ = ("__numpy_dtype__", "bits", "code", "part")

    name: str
    code: str
    kind: str
    itemsize: int
    bits: int
    compute: DType
    part: DType
    __numpy_dtype__: np.dtype | None

    def __init__(
        self, name: str, code: str, kind: str, itemsize: int, in_numpy: bool = True
    ) -> None:
        self.name, self.code, self.kind, self.itemsize = name, code, kind, itemsize
        self.bits, self._hash = itemsize * 8, hash(name)
        self.compute = float32 if kind == "f" and itemsize < 4 else self
        self.part = self if kind != "c" else float32 if itemsize == 8 else float64
        self.__numpy_dtype__ = np.dtype(name) if in_numpy else None

    def __repr__(self) -> str:
        return f"dovetail.{self.name}"

    def __call__(self, x: object = 0) -> Any:
        """Return a value, a list or a tensor in this dtype: `dt.float32(0.1)` is 0-dimensional."""
        try:
            return callbacks.as_tensor(x, dtype=self)
        except DovetailError as error:
            error.args = (str(error).replace("asarray: ", f"{self.name}: ", 1), *error.args[1:])
            raise

    if not TYPE_CHECKING:  # a type checker must report misspelt names

        def __getattr__(self, name: str) -> Any:
            if name in ("min", "max"):  # of floats and complex numbers, whose properties raise
                raise AttributeError(
                    f"{self.name}: only dtypes of integers and bool have {name}; use "
                    f"dt.finfo({self.part.name!r}).{name}"
                )
            if name in _NUMPY_ATTRIBUTES and self.__numpy_dtype__ is not None:
                return getattr(self.__numpy_dtype__, name)
            raise hints.missing_attribute(self, name)

    __hash__ = DTypeRecord.__hash__  # a class with an `__eq__` does not inherit it

    def __eq__(self, other: object) -> bool:
        if type(other) is DType:
            return self is other
        if isinstance(other, np.dtype):  # of the same byte order
            return self.__numpy_dtype__ is not None and other == self.__numpy_dtype__
        return isinstance(other, str | type) and _find_by_name_or_type(other) is self

    def __reduce__(self) -> tuple[object, ...]:
        return (dtype, (self.name,))

    @property
    def type(self) -> type[np.generic] | None:
        """Return NumPy's scalar type, like `np.dtype.type`, or None if there is none."""
        return None if self.__numpy_dtype__ is None else self.__numpy_dtype__.type

    @property
    def is_float(self) -> bool:
        """Return True if this is a real floating-point dtype."""
        return self.kind == "f"

    @property
    def is_floating_point(self) -> bool:
        """Return `is_float`, under PyTorch's name."""
        return self.is_float

    @property
    def is_signed(self) -> bool:
        """Return True if this dtype has negative values."""
        return self.kind in "ifc"

    @property
    def is_complex(self) -> bool:
        """Return True if this is a complex dtype: pairs of floats."""
        return self.kind == "c"

    @property
    def is_integer(self) -> bool:
        """Return True if this is a signed or unsigned integer dtype (bool is not)."""
        return self.kind in "iu"

    @property
    def min(self) -> int:
        """Return the smallest value of an integer dtype, 0 for bool.

        Raises: AttributeError, for floats and complex numbers.
        """
        if self.kind in "fc":
            raise AttributeError
        return -(1 << (self.bits - 1)) if self.kind == "i" else 0

    @property
    def max(self) -> int:
        """Return the largest value of an integer dtype, 1 for bool.

        Raises: AttributeError, for floats and complex numbers.
        """
        if self.kind in "fc":
            raise AttributeError
        return 1 if self.kind == "b" else (1 << (self.bits - (self.kind == "i"))) - 1


bool_: DType = DType("bool", "b8", "b", 1)
int8: DType = DType("int8", "i8", "i", 1)
int16: DType = DType("int16", "i16", "i", 2)
int32: DType = DType("int32", "i32", "i", 4)
int64: DType = DType("int64", "i64", "i", 8)
uint8: DType = DType("uint8", "u8", "u", 1)
uint16: DType = DType("uint16", "u16", "u", 2)
uint32: DType = DType("uint32", "u32", "u", 4)
uint64: DType = DType("uint64", "u64", "u", 8)
float32: DType = DType("float32", "f32", "f", 4)
float16: DType = DType("float16", "f16", "f", 2)
bfloat16: DType = DType("bfloat16", "bf16", "f", 2, in_numpy=False)
float64: DType = DType("float64", "f64", "f", 8)
complex64: DType = DType("complex64", "c64", "c", 8)
complex128: DType = DType("complex128", "c128", "c", 16)

SIGNED = (int8, int16, int32, int64)
UNSIGNED = (uint8, uint16, uint32, uint64)
INTEGERS = SIGNED + UNSIGNED
"""The dtypes of integers."""
FLOATS = (float16, bfloat16, float32, float64)
"""The dtypes of real floating-point numbers."""
REALS = INTEGERS + FLOATS
COMPLEX = (complex64, complex128)
ALL = (bool_, *INTEGERS, *FLOATS, *COMPLEX)
BY_NAME = {d.name: d for d in ALL}
BY_CODE = {d.code: d for d in ALL}
BUILT_IN = frozenset(ALL)
# Names in ml_dtypes of floats that NumPy lacks; plugins add theirs.
FOREIGN_NAMES: dict[DType, tuple[str, ...]] = {bfloat16: ("bfloat16",)}
_NAMES = (str, type, np.dtype)
_FROM_NUMPY = {d.__numpy_dtype__: d for d in ALL if d.__numpy_dtype__ is not None}
_FROM_PYTHON = {bool: bool_, int: int64, float: float32, complex: complex64}


def set_python_float(d: DType) -> None:
    """Set the process-wide meaning of Python's `float`, float32 or float64, and of `complex`."""
    _FROM_PYTHON[float], _FROM_PYTHON[complex] = d, complex128 if d is float64 else complex64


def dtype(spec: object, op: str = "dtype") -> DType:
    """Return the dtype that `spec` names.

    `spec`: a dovetail dtype, its name, a NumPy dtype or scalar type, or bool/int/float/complex.

    Python's `float` means the default floating dtype, `complex` the complex one whose parts are
    that: float32 and complex64, see `dt.set_default_dtype`. `int` means int64.

    Raises: DTypeError for anything else, naming `op`.
    """
    if type(spec) is DType:
        return spec
    match = _FROM_NUMPY.get(spec) if isinstance(spec, np.dtype) else None
    if match is None and isinstance(spec, _NAMES):
        match = _find_by_name_or_type(spec)
    if match is None:
        match = _find_plugin_dtype(spec)
    if match is None:
        raise DTypeError(
            f"{op}: no dovetail dtype corresponds to {shown(spec)}{_suggest_name(spec)}; known: "
            f"{', '.join(BY_NAME)}"
        )
    return match


def _suggest_name(spec: object) -> str:
    """Return a hint with the dtype that a misspelt word may mean, or ""."""
    if not isinstance(spec, str):
        return ""
    import difflib  # takes 3 ms, so it is not part of `import dovetail`

    near = difflib.get_close_matches(spec.rpartition(".")[2].lower(), BY_NAME, 1, 0.8)
    return f'; did you mean "{near[0]}"?' if near else ""


def _find_by_name_or_type(spec: str | type | np.dtype) -> DType | None:
    """Return the built-in or registered dtype of a name or type, or None."""
    if isinstance(spec, str) and spec in BY_NAME:
        return BY_NAME[spec]
    if isinstance(spec, type) and spec in _FROM_PYTHON:
        return _FROM_PYTHON[spec]
    try:
        return _FROM_NUMPY.get(np.dtype(spec).newbyteorder("="))
    # NumPy raises these for unknown and for deprecated names.
    except (TypeError, ValueError, SyntaxError, DeprecationWarning):
        return None


def _find_plugin_dtype(spec: object) -> DType | None:
    """Find a plugin's dtype by its name, or by another library's dtype object; else return None.

    A dtype of another library is accepted only if its format is known to be the same.
    """
    if isinstance(spec, str):
        return find_plugin(spec)
    name = getattr(spec, "name", None) or getattr(spec, "__name__", None)
    if name == "bfloat16":
        return bfloat16
    return find_plugin(name, True) if isinstance(name, str) else None


_plugin_finders: list[Callable[[str, bool], DType | None]] = []


def register_finder(find: Callable[[str, bool], DType | None]) -> None:
    """Register a function that finds dtypes of plugins, by name or by foreign name."""
    _plugin_finders.append(find)


def find_plugin(name: str, is_foreign: bool = False) -> DType | None:
    """Load the plugin of a dtype's name and return the dtype, or None if no plugin has it.

    `is_foreign`: the name is the one in other libraries.
    Raises: PluginError where the plugin cannot be used.
    """
    return next((d for find in _plugin_finders if (d := find(name, is_foreign)) is not None), None)


def load_plugins() -> None:
    """Load all dtype plugins, which registers their dtypes."""
    find_plugin("", True)


# --- formats of floats ----------------------------------------------------------------------------


class FloatFormat(NamedTuple):
    """The format of a float: digits of its significand, its largest and its smallest numbers."""

    digits: int
    max: float
    smallest_normal: float
    smallest: float  # above zero
    infinities: bool = True

    def contains(self, other: FloatFormat) -> bool:
        """Return True if this format has every number of another one."""
        return (
            self.digits >= other.digits
            and self.max >= other.max
            and self.smallest <= other.smallest
            and self.infinities >= other.infinities
        )


def _build_binary_format(digits: int, top: int) -> FloatFormat:
    """Build the format of an IEEE 754 float. `top`: its largest exponent."""
    return FloatFormat(
        digits, (2.0 - 2.0 ** (1 - digits)) * 2.0**top, 2.0 ** (1 - top), 2.0 ** (2 - top - digits)
    )


FORMATS = {
    float16: _build_binary_format(11, 15),
    bfloat16: _build_binary_format(8, 127),
    float32: _build_binary_format(24, 127),
    float64: _build_binary_format(53, 1023),
}


def zero_low_bits(d: DType) -> int:
    """Return the number of low bits that are 0 in a reduced-precision float as float32; else 0."""
    return 0 if d.compute is d else FORMATS[float32].digits - FORMATS[d].digits


# --- promotion ------------------------------------------------------------------------------------


KIND_RANKS = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}  # a cast to a lower rank loses numbers


def promote(a: DType, b: DType) -> DType:
    """Return the dtype of an op on `a` and `b`, by the Array API's promotion lattice.

    Beyond the standard: two floats give the one that holds the other, float32 if neither does, as
    float16 with bfloat16; an integer with a float gives the float, as in PyTorch; bool with
    anything gives the other.
    Raises: DTypeError for uint64 with a signed integer, which no dtype holds.
    Source: Array API 2025.12, type promotion rules.
    """
    if a is b:
        return a
    promoted = _PROMOTIONS[a, b]
    return promoted if isinstance(promoted, DType) else promoted()


def _find_promotion(a: DType, b: DType) -> DType | None:
    """Return the dtype that two dtypes promote to, or None if no dtype holds both."""
    if a is b or b.kind == "b":
        return a
    if a.kind == "b":
        return b
    if "c" in (a.kind, b.kind):
        wide = any(d in (float64, complex128) for d in (a, b))
        return complex128 if wide else complex64
    if a.kind == b.kind == "f":
        up, down = FORMATS[b].contains(FORMATS[a]), FORMATS[a].contains(FORMATS[b])
        return float32 if up is down else b if up else a
    if "f" in (a.kind, b.kind):
        return a if a.kind == "f" else b
    if a.kind == b.kind:
        return a if a.itemsize >= b.itemsize else b
    signed, unsigned = (a, b) if a.kind == "i" else (b, a)
    if signed.itemsize > unsigned.itemsize:
        return signed
    return next((d for d in SIGNED if d.itemsize > unsigned.itemsize), None)


def _build_refusal(a: DType, b: DType) -> Callable[[], DType]:
    """Build a function that raises DTypeError for a pair without a promotion."""

    def refuse() -> DType:
        """Raise the DTypeError of the pair."""
        raise DTypeError(
            f"no dtype holds both {a.name} and {b.name}; cast one of them first, "
            "with x.astype(dtype)"
        )

    return refuse


_PROMOTIONS: dict[tuple[DType, DType], DType | Callable[[], DType]] = {
    (a, b): _find_promotion(a, b) or _build_refusal(a, b) for a in ALL for b in ALL
}


def register_dtype(d: DType, holds: FloatFormat) -> None:
    """Add a plugin's float of reduced precision to names, codes, formats and promotions."""
    FORMATS[d] = holds
    BY_NAME[d.name] = BY_CODE[d.code] = d
    for other in BY_NAME.values():
        _PROMOTIONS[d, other] = _find_promotion(d, other) or _build_refusal(d, other)
        _PROMOTIONS[other, d] = _find_promotion(other, d) or _build_refusal(other, d)


def unregister_dtype(d: DType) -> None:
    """Remove a plugin's dtype from all tables; no code may compute with such a dtype any more."""
    del BY_NAME[d.name], BY_CODE[d.code], FORMATS[d]
    for pair in [p for p in _PROMOTIONS if d in p]:
        del _PROMOTIONS[pair]
