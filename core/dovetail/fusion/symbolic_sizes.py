"""Symbolic sizes: integers that know the formula by which they follow from a graph's sizes.

The planner computes with them as with ints. Each has the value that it has in the graph being
planned, so planning takes the path that it takes with ints. What the path depends on is recorded:
every comparison becomes a *guard*, and a use as a plain int (an index, a range, a constant of a
kernel) becomes the guard that the value is the same. For other sizes that meet all guards the
planner would take the same path; the formulas then give the numbers of the plan.

A formula is a polynomial over *atoms*: the input sizes, and quotients, which are rounded. Its terms
are sorted, so equal polynomials are equal tuples and compare without a guard. So do those whose
bounds decide: input sizes are at least INPUT_MIN.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

from .size_program import VALUE_MAX, Opcode, SizeProgram

INPUT_MIN = 2  # smaller sizes are constants: planning treats 0 and 1 as cases of their own
INSTRUCTIONS_MAX = 4096  # of a program; a longer one would save little

# The sum of products of atoms, each with its coefficient; () is the product of none.
Terms: TypeAlias = tuple[tuple[tuple[int, ...], int], ...]
GuardKind: TypeAlias = Literal["zero", "nonzero", "nonnegative"]
SizeLike: TypeAlias = "int | SymbolicSize"


class Atom(NamedTuple):
    """An input (`kind` is "input"), or the quotient of two polynomials, rounded down or up.

    "bits" is the number of bits of `dividend`.
    """

    kind: Literal["input", "floor", "ceil", "bits"]
    dividend: Terms = ()
    divisor: Terms = ()


class GuardRecorder:
    """The inputs, atoms and guards of one planning with symbolic sizes."""

    def __init__(self, values: Sequence[int]) -> None:
        self._atoms: list[Atom] = []
        self._atom_minima: list[int | None] = []  # a lower bound of each atom, or None
        self._atom_ids: dict[Atom, int] = {}
        # guards: the polynomials that are 0, or are not; those, without their constant, that are at
        # least minus this constant
        self._zero: dict[Terms, None] = {}
        self._nonzero: dict[Terms, None] = {}
        self._nonnegative: dict[Terms, int] = {}
        self.inputs: list[SymbolicSize] = []
        for value in values:
            self._atoms.append(Atom("input"))
            self._atom_minima.append(INPUT_MIN)
            atom = len(self._atoms) - 1
            self.inputs.append(SymbolicSize(self, (((atom,), 1),), value))

    @property
    def guard_count(self) -> int:
        """The number of guards."""
        return len(self._zero) + len(self._nonzero) + len(self._nonnegative)

    def create_size(self, terms: Terms, value: int) -> SizeLike:
        """Return the size with this formula: an int if it is constant."""
        if not terms or (len(terms) == 1 and not terms[0][0]):
            return value
        return SymbolicSize(self, terms, value)

    def require(self, kind: GuardKind, terms: Terms) -> None:
        """Record a guard about a polynomial, which holds for the present sizes."""
        constant = next((c for m, c in terms if not m), 0)
        if kind == "nonnegative":
            varying = tuple([t for t in terms if t[0]])
            self._nonnegative[varying] = min(constant, self._nonnegative.get(varying, constant))
            return
        if terms[-1][1] < 0:  # a polynomial and its negative are one guard
            terms = _scale(terms, -1)
        (self._zero if kind == "zero" else self._nonzero)[terms] = None

    def minimum(self, terms: Terms) -> int | None:
        """Return a lower bound of a polynomial for all inputs, or None if none is known."""
        total = 0
        for atoms, coefficient in terms:
            if not atoms:
                total += coefficient
                continue
            minima = [self._atom_minima[a] for a in atoms]
            if coefficient < 0 or any(n is None or n < 0 for n in minima):
                return None
            total += coefficient * math.prod([n or 0 for n in minima])
        return total

    def sign(self, terms: Terms) -> int | None:
        """Return 1 or -1 if a polynomial is positive, or negative, for all inputs; else None."""
        minimum = self.minimum(terms)
        if minimum is not None and minimum > 0:
            return 1
        minimum = self.minimum(_scale(terms, -1))
        return -1 if minimum is not None and minimum > 0 else None

    def create_atom(self, atom: Atom, value: int) -> SizeLike:
        """Return the size whose formula is this atom; an equal atom that is there is used again."""
        k = self._atom_ids.get(atom)
        if k is None:
            k = self._atom_ids[atom] = len(self._atoms)
            self._atoms.append(atom)
            minimum = self.minimum(atom.dividend)
            if minimum is not None and minimum >= 0 and atom.kind != "bits":
                constant = atom.divisor[0][1] if _is_constant(atom.divisor) else None
                if atom.kind == "floor":
                    minimum = 0 if constant is None else minimum // constant
                else:
                    minimum = min(minimum, 1) if constant is None else -(-minimum // constant)
            elif minimum is not None:
                minimum = max(minimum, 0).bit_length() if atom.kind == "bits" else None
            self._atom_minima.append(minimum)
        return SymbolicSize(self, (((k,), 1),), value)

    def compile(self, outputs: Sequence[SizeLike]) -> SizeProgram | None:
        """Return the program that checks the guards and computes the outputs from the inputs.

        Return None if it would be too long, or needs numbers above VALUE_MAX.
        """
        writer = _ProgramWriter(self._atoms, len(self.inputs))
        for terms in self._zero:
            writer.check(Opcode.REQUIRE_ZERO, terms)
        for varying, constant in self._nonnegative.items():
            # a smaller constant makes the guard stricter
            terms = _add(varying, _constant_terms(min(constant, VALUE_MAX)))
            writer.check(Opcode.REQUIRE_NONNEGATIVE, terms)
        for terms in self._nonzero:
            if abs(terms[0][1]) <= VALUE_MAX:  # no size is ELEMENTS_MAX
                writer.check(Opcode.REQUIRE_NONZERO, terms)
        registers = [writer.compute(terms_of(x)) for x in outputs]
        is_small = all(max(map(abs, i)) <= VALUE_MAX for i in writer.instructions)
        if len(writer.instructions) > INSTRUCTIONS_MAX or not is_small:
            return None
        return SizeProgram(len(self.inputs), writer.instructions, registers)


def _is_constant(terms: Terms) -> bool:
    """Return True if a polynomial other than 0 has no atoms."""
    return len(terms) == 1 and not terms[0][0]


def _constant_terms(value: int) -> Terms:
    """Return the polynomial of a number."""
    return (((), value),) if value else ()


def terms_of(x: SizeLike) -> Terms:
    """Return the polynomial of a size, or of a number."""
    return x.terms if isinstance(x, SymbolicSize) else _constant_terms(x)


def _scale(terms: Terms, factor: int) -> Terms:
    """Return a polynomial times a number other than 0."""
    return tuple([(atoms, c * factor) for atoms, c in terms])


def _add(a: Terms, b: Terms) -> Terms:
    """Return the sum of two polynomials."""
    total = dict(a)
    for atoms, c in b:
        total[atoms] = total.get(atoms, 0) + c
    return tuple(sorted([t for t in total.items() if t[1]]))


def _multiply(a: Terms, b: Terms) -> Terms:
    """Return the product of two polynomials."""
    total: dict[tuple[int, ...], int] = {}
    for m, c in a:
        for n, d in b:
            atoms = tuple(sorted(m + n))
            total[atoms] = total.get(atoms, 0) + c * d
    return tuple(sorted([t for t in total.items() if t[1]]))


def _divide_exactly(a: Terms, b: Terms) -> Terms | None:
    """Return the quotient if `b` is one product that divides each product of `a`, else None."""
    if len(b) != 1:
        return None
    (divisor, d), quotient = b[0], []
    for atoms, c in a:
        left = list(atoms)
        for atom in divisor:
            if atom not in left:
                return None
            left.remove(atom)
        if c % d:
            return None
        quotient.append((tuple(left), c // d))
    return tuple(sorted(quotient))


class SymbolicSize:
    """An integer with the formula by which it follows from the inputs of a recorder.

    It is no subclass of int: code that needs an int calls `__index__`, which records a guard.
    """

    __slots__ = ("recorder", "terms", "value")

    def __init__(self, recorder: GuardRecorder, terms: Terms, value: int) -> None:
        self.recorder, self.terms, self.value = recorder, terms, value

    # --- formulas

    def __neg__(self) -> SizeLike:
        return SymbolicSize(self.recorder, _scale(self.terms, -1), -self.value)

    def __pos__(self) -> SizeLike:
        return self

    def __abs__(self) -> SizeLike:
        return -self if self < 0 else self

    def __add__(self, other: Any) -> Any:
        if isinstance(other, SymbolicSize):
            terms, value = _add(self.terms, other.terms), self.value + other.value
        elif isinstance(other, int):
            terms, value = _add(self.terms, _constant_terms(int(other))), self.value + other
        else:
            return int(self) + other if isinstance(other, float) else NotImplemented
        return self.recorder.create_size(terms, value)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self + -other if isinstance(other, SymbolicSize | int | float) else NotImplemented

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, SymbolicSize):
            terms, value = _multiply(self.terms, other.terms), self.value * other.value
        elif isinstance(other, int):
            terms, value = _multiply(self.terms, _constant_terms(int(other))), self.value * other
        else:
            return int(self) * other if isinstance(other, float) else NotImplemented
        return self.recorder.create_size(terms, value)

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> Any:
        if isinstance(other, SymbolicSize | int):
            return _divide(self, other, self.recorder)
        return int(self) // other if isinstance(other, float) else NotImplemented

    def __rfloordiv__(self, other: Any) -> Any:
        if isinstance(other, int):
            return _divide(other, self, self.recorder)
        return other // int(self)

    def __mod__(self, other: Any) -> Any:
        return self - other * (self // other)

    def __rmod__(self, other: Any) -> Any:
        return other - self * (other // self)

    def __divmod__(self, other: Any) -> Any:
        quotient = self // other
        return quotient, self - other * quotient

    def __rshift__(self, other: int) -> Any:
        return self // (1 << other)

    def __lshift__(self, other: int) -> Any:
        return self * (1 << other)

    def bit_length(self) -> SizeLike:
        """Return the number of bits, as that of an int; negative ones become plain ints."""
        if self < 0:
            return int(self).bit_length()
        return self.recorder.create_atom(Atom("bits", self.terms), self.value.bit_length())

    # --- guards

    def _compare(self, other: SizeLike | float) -> tuple[float, Terms, int | None]:
        """Return the difference of two sizes, its polynomial, and its sign if that is known."""
        difference = self - other
        if not isinstance(difference, SymbolicSize):
            return difference, (), (difference > 0) - (difference < 0)
        return difference.value, difference.terms, self.recorder.sign(difference.terms)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SymbolicSize):
            if not isinstance(other, int):
                return isinstance(other, float) and int(self) == other
        elif other.recorder is not self.recorder:  # a key of a cache that outlives a planning
            return False
        value, terms, sign = self._compare(other)
        if sign is None:
            self.recorder.require("nonzero" if value else "zero", terms)
        return value == 0

    def __lt__(self, other: SizeLike | float) -> bool:
        value, terms, sign = self._compare(other)
        if sign is None:  # value < 0: -value - 1 >= 0
            negative = _add(_scale(terms, -1), _constant_terms(-1))
            self.recorder.require("nonnegative", negative if value < 0 else terms)
        return value < 0

    def __gt__(self, other: SizeLike | float) -> bool:
        value, terms, sign = self._compare(other)
        if sign is None:
            positive = _add(terms, _constant_terms(-1))
            self.recorder.require("nonnegative", positive if value > 0 else _scale(terms, -1))
        return value > 0

    def __le__(self, other: SizeLike | float) -> bool:
        return not self > other

    def __ge__(self, other: SizeLike | float) -> bool:
        return not self < other

    def __bool__(self) -> bool:
        return self != 0

    def __hash__(self) -> int:
        """Return one hash for all sizes but 0 and 1: so a dict compares, and records guards.

        Planning has no other constants as sizes: an int of another value is no key beside a size.
        """
        for constant in (0, 1):
            if self == constant:
                return hash(constant)
        return 0x517E

    def __index__(self) -> int:
        if self == self.value:  # records the guard
            return self.value
        raise AssertionError

    __int__ = __index__

    def __float__(self) -> float:
        return float(int(self))

    def __truediv__(self, other: Any) -> Any:
        return int(self) / other

    def __rtruediv__(self, other: Any) -> Any:
        return other / int(self)

    def __rlshift__(self, other: int) -> int:
        return other << int(self)

    def __rrshift__(self, other: int) -> int:
        return other >> int(self)

    def __pow__(self, other: int) -> Any:
        return math.prod([self] * other)

    def __and__(self, other: int) -> int:
        return int(self) & int(other)

    __rand__ = __and__

    def __or__(self, other: int) -> int:
        return int(self) | int(other)

    __ror__ = __or__

    def __xor__(self, other: int) -> int:
        return int(self) ^ int(other)

    __rxor__ = __xor__

    def __invert__(self) -> Any:
        return -self - 1

    def __repr__(self) -> str:
        return repr(int(self))

    def __format__(self, text: str) -> str:
        return format(int(self), text)


def _divide(a: SizeLike, b: SizeLike, recorder: GuardRecorder) -> SizeLike:
    """Return the quotient, rounded down; the divisor must be positive for it to be a formula."""
    if not b > 0:
        return int(a) // int(b)
    dividend, divisor = terms_of(a), terms_of(b)
    exact = _divide_exactly(dividend, divisor)
    value = int_value(a) // int_value(b)
    if exact is not None:
        return recorder.create_size(exact, value)
    if dividend and dividend[-1][1] < 0:  # `-(-n // m)` is positive: its bounds are known
        return -recorder.create_atom(Atom("ceil", _scale(dividend, -1), divisor), -value)
    return recorder.create_atom(Atom("floor", dividend, divisor), value)


def int_value(x: SizeLike) -> int:
    """Return the present value of a size, without a guard; an int itself."""
    return x.value if isinstance(x, SymbolicSize) else x


class _ProgramWriter:
    """Writes the instructions that compute polynomials; equal ones are computed once."""

    def __init__(self, atoms: Sequence[Atom], inputs: int) -> None:
        self._atoms, self._inputs = atoms, inputs
        self.instructions: list[tuple[int, int, int]] = []
        self._registers: dict[tuple[int, int, int], int] = {}
        self._computed: dict[Terms, int] = {}

    def _emit(self, opcode: int, a: int, b: int = 0) -> int:
        """Return the register with the result of an instruction; append it on first use."""
        key = (opcode, a, b)
        register = self._registers.get(key)
        if register is None:
            register = self._registers[key] = self._inputs + len(self.instructions)
            self.instructions.append(key)
        return register

    def check(self, opcode: int, terms: Terms) -> None:
        """Append a guard about a polynomial."""
        self._emit(opcode, self.compute(terms))

    def compute(self, terms: Terms) -> int:
        """Return the register with the value of a polynomial."""
        if terms not in self._computed:
            self._computed[terms] = self._sum(terms)
        return self._computed[terms]

    def _sum(self, terms: Terms) -> int:
        """Return the register with the sum of a polynomial's products; its constant comes last."""
        total = None
        for atoms, coefficient in terms:
            if atoms:
                product = self._multiply(atoms)
                if coefficient != 1:
                    product = self._emit(Opcode.MULTIPLY_CONSTANT, product, coefficient)
                total = product if total is None else self._emit(Opcode.ADD, total, product)
        constant = next((c for atoms, c in terms if not atoms), 0)
        if total is None:
            return self._emit(Opcode.CONSTANT, constant)
        return self._emit(Opcode.ADD_CONSTANT, total, constant) if constant else total

    def _multiply(self, atoms: tuple[int, ...]) -> int:
        """Return the register with a product of atoms."""
        product = self._compute_atom(atoms[0])
        for a in atoms[1:]:
            product = self._emit(Opcode.MULTIPLY, product, self._compute_atom(a))
        return product

    def _compute_atom(self, k: int) -> int:
        """Return the register with the value of an atom."""
        kind, dividend, divisor = self._atoms[k]
        if kind == "input":
            return k
        x = self.compute(dividend)
        if kind == "bits":
            return self._emit(Opcode.BIT_LENGTH, x)
        opcode = Opcode.DIVIDE_DOWN if kind == "floor" else Opcode.DIVIDE_UP
        return self._emit(opcode, x, self.compute(divisor))
