"""NumPy's ufuncs with ndarrays: dovetail's functions, with the dtypes that NumPy's loops have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as host

from ..dtypes import BY_NAME, DType, bool_
from ..engine import tracer_api
from ..engine.traced_numbers import TracedFloat
from ..errors import DTypeError, UnknownFunctionError
from ..functions.creation.from_values import asarray as tensor_from
from ..functions.datatypes import cast
from ..functions.elementwise.op_functions import where as select
from ..functions.numpy.protocol import _extra_function, _find_function
from ..functions.shape.copies import copy
from ..tensor import host_arithmetic
from ..tensor.c_fields import expr_of, set_class
from ..tensor.tensor import Tensor
from ..tensor.writes import editable_array
from .calls import (
    as_ndarray,
    as_result,
    call_on_host,
    cast_values,
    find_tensor,
    is_tracing,
    join,
    ndarray_class,
    read_result,
    retry_on_host,
    to_host,
    write_out,
)

PLANS_MAX = 256  # combinations of operands that a ufunc remembers

NUMPY_SCALARS = frozenset(d.__numpy_dtype__.type for d in BY_NAME.values() if d.__numpy_dtype__)
NUMBER_TYPES = NUMPY_SCALARS | {bool, int, float, complex}
NUMBER = "number"  # the conversion of a NumPy scalar to a Python number


# Ufuncs of small arrays that the host computes at once, in the order of their numbers there.
AT_ONCE: dict[str, Callable[..., Any]] = {
    name: partial(function, op)
    for function, names in (
        (
            host_arithmetic.compute,
            "add subtract multiply divide floor_divide remainder maximum minimum bitwise_and "
            "bitwise_or bitwise_xor",
        ),
        (host_arithmetic.compare, "less less_equal equal not_equal greater greater_equal"),
        (
            host_arithmetic.compute_unary,
            "negative absolute sqrt square floor ceil rint trunc invert",
        ),
    )
    for op, name in enumerate(names.split())
}


class Plan(NamedTuple):
    """The treatment of operands of some kinds by a ufunc.

    conversions: of each operand, for `_convert`; empty if none is converted.
    dtypes: those of the results.
    is_direct: True if dovetail's function returns these dtypes.
    """

    conversions: tuple[Any, ...]
    dtypes: tuple[DType, ...]
    is_direct: bool = False


class ufunc:
    """A function of elements: NumPy's ufunc of this name, for ndarrays.

    Attributes such as `nin` and `identity` are those of NumPy's ufunc.

    - `theirs`: NumPy's ufunc.
    """

    def __init__(self, theirs: host.ufunc) -> None:
        self.__wrapped_ufunc__ = theirs
        self.__name__, self.__doc__ = theirs.__name__, theirs.__doc__
        self.nin: int = theirs.nin
        self._ours: Callable[..., Any] | None = None
        self._at_once = AT_ONCE.get(theirs.__name__)
        self._plans: dict[Any, Plan] = {}  # by the kinds of operands, with `dtype=` if given
        self._direct: dict[DType, Callable[..., Any]] = {}  # dovetail's function, by its one dtype

    def __repr__(self) -> str:
        return f"<ufunc '{self.__name__}'>"

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__wrapped_ufunc__, name)

    def __reduce__(self) -> str | tuple[Any, ...]:
        return find_ufunc, (self.__wrapped_ufunc__,)

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Return the function of the operands, on the device of the tensors among them.

        Raises: TypeError if NumPy has no loop for the dtypes.
        """
        if len(args) == 1 and not options and self.nin == 1 and type(args[0]) is ndarray_class():
            x = args[0]
            small = None if self._at_once is None else self._at_once(x)
            if small is not None:
                return small
            direct = self._direct.get(expr_of(x).spec.dtype)
            if direct is not None:
                result = set_class(direct(x), type(x))
                return result if expr_of(result).spec.shape else read_result(result)
        elif args and not options and len(args) <= 2:
            first, last = type(args[0]), type(args[-1])
            if first in NUMBER_TYPES and last in NUMBER_TYPES:
                return self.__wrapped_ufunc__(*args)
            kind = ndarray_class()
            if self._at_once is not None and len(args) == self.nin and kind in (first, last):
                small = self._at_once(*args)
                if small is not None:
                    return small
        kinds = _find_kinds(args)
        if not options:
            plan = self._plans.get(kinds)
            if plan is not None and plan.is_direct:
                values = map(_convert, args, plan.conversions) if plan.conversions else args
                result = set_class(self._ours(*values), ndarray_class())  # type: ignore[misc]  # set before
                return result if expr_of(result).spec.shape else read_result(result)
            if NUMBER_TYPES.issuperset(kinds):
                return self.__wrapped_ufunc__(*args)
        if find_tensor([*args, *options.values()]) is None:
            return call_on_host(self.__wrapped_ufunc__, args, options)
        return self._call(args, **options)

    def _call(
        self,
        args: tuple[Any, ...],
        out: Any = None,
        where: Any = True,
        casting: str = "same_kind",
        dtype: Any = None,
        order: str = "K",
        subok: bool = True,
        **others: Any,
    ) -> Any:
        """Return the function of operands, of which one is a tensor; `order` is ignored."""
        theirs = self.__wrapped_ufunc__
        if len(args) > theirs.nin:
            args, out = args[: theirs.nin], args[theirs.nin :]
        outs = out if isinstance(out, tuple) else (out,)
        outs += (None,) * (theirs.nout - len(outs))
        ours = self._ours = (
            self._ours or _find_function(theirs, "__call__") or _extra_function(theirs)
        )
        own = {"out": out, "where": where, "casting": casting, "dtype": dtype} | others
        if ours is None or others:
            if is_tracing():
                raise UnknownFunctionError(
                    f"np.{self.__name__}: dovetail has no such function, so a captured function "
                    "cannot call it"
                )
            return call_on_host(theirs, args, own)
        operands = [self._operand(a) for a in args]
        kinds = _find_kinds(operands)
        key = kinds if dtype is None else (kinds, dtype)
        plan = self._plans.get(key) or self._make_plan(key, kinds, dtype)
        is_integer_power = theirs is host.power and plan.dtypes[0].is_integer
        if is_integer_power:
            _refuse_negative(operands[1])
        if plan.dtypes[0] is bool_ and theirs is host.absolute:
            ours = copy  # dovetail has no absolute value of bools
        try:
            result = ours(
                *(map(_convert, operands, plan.conversions) if plan.conversions else operands)
            )
        except DTypeError as error:
            return retry_on_host(error, theirs, args, own)
        results = result if isinstance(result, tuple) else (result,)
        typed = [
            r if r.dtype is d else cast(r, d) for r, d in zip(results, plan.dtypes, strict=True)
        ]
        is_new = not plan.is_direct and dtype is None and ours is not copy and not is_integer_power
        if is_new and typed[0] is result and all(result is not x for x in operands):
            self._store(key, plan._replace(is_direct=True))
            if len(kinds) == 1 and not plan.conversions:
                self._direct[kinds[0]] = ours
        if where is not True:
            typed = [_masked(r, where, o) for r, o in zip(typed, outs, strict=True)]
        final = tuple(
            [
                read_result(as_result(r))
                if o is None
                else write_out(o, r, casting, broadcasts=True)
                for r, o in zip(typed, outs, strict=True)
            ]
        )
        return final if len(final) > 1 else final[0]

    def _operand(self, a: Any) -> Any:
        """Return an operand as a tensor or a Python number."""
        if type(a) is TracedFloat or isinstance(a, tracer_api.StandIn):
            a = a.read()
        if isinstance(a, Tensor):
            return as_ndarray(a)
        if isinstance(a, (list, tuple)):
            return join(a) if find_tensor(a) is not None else as_result(host.asarray(a))
        if type(a) in NUMBER_TYPES:
            return a
        if isinstance(a, host.ndarray):
            return tensor_from(a, copy=True)
        if hasattr(a, "__array__"):
            return tensor_from(host.asarray(a))
        raise DTypeError(
            f"{self.__name__}: expected arrays or numbers, got {type(a).__name__}; use np.asarray"
        )

    def _make_plan(self, key: Any, kinds: tuple[Any, ...], dtype: Any) -> Plan:
        """Return the conversions of operands by NumPy's promotion, and remember them.

        Raises: TypeError if NumPy has no loop for the dtypes.
        """
        theirs = self.__wrapped_ufunc__
        dtypes = [d.__numpy_dtype__ if isinstance(d, DType) else d for d in kinds]
        weak = [d if d in (int, float, complex) else host.dtype(d) for d in dtypes]
        options: dict[str, Any] = {}
        if dtype is not None:
            wanted = host.dtype(to_host(dtype))
            options = {
                "signature": (*(None,) * theirs.nin, *(wanted,) * theirs.nout),
                "casting": "unsafe",
            }
        loop = theirs.resolve_dtypes((*weak, *(None,) * theirs.nout), **options)
        named = [BY_NAME[d.name] for d in loop]
        conversions = tuple(
            [_find_conversion(kind, d) for kind, d in zip(kinds, named, strict=False)]
        )
        plan = Plan(conversions if any(conversions) else (), tuple(named[theirs.nin :]))
        return self._store(key, plan)

    def _store(self, key: Any, plan: Plan) -> Plan:
        """Remember a plan, unless there are too many."""
        if key in self._plans or len(self._plans) < PLANS_MAX:
            self._plans[key] = plan
        return plan

    def _method(self, name: str, x: Any, *args: Any, **options: Any) -> Any:
        """Call a method of the ufunc by dovetail, or by NumPy if dovetail lacks it."""
        theirs = getattr(self.__wrapped_ufunc__, name)
        if find_tensor([x, *args, *options.values()]) is None:
            return call_on_host(theirs, (x, *args), options)
        out = options.pop("out", None)
        (out,) = out if isinstance(out, tuple) else (out,)
        ours = _find_function(self.__wrapped_ufunc__, name)
        dtype = options.get("dtype")
        if ours is None or (options.get("initial") is None and "initial" in options):
            result = call_on_host(theirs, (x, *args), options)
        else:
            operand = self._operand(x)
            d = None if dtype is None else BY_NAME[host.dtype(to_host(dtype)).name]
            if d is not None:
                operand = cast_values(operand, d)
                options["dtype"] = d
            if d is bool_ or self.__name__ not in ("add", "multiply"):
                options.pop("dtype", None)  # of bools a sum or product is one of ints
            if name == "reduce" and operand.ndim == 0 and options["axis"] in (0, -1):
                options["axis"] = None
            try:
                result = ours(operand, *args, **options)
            except DTypeError as error:
                result = retry_on_host(error, theirs, (operand, *args), options)
            if isinstance(result, Tensor):
                result = cast(result, d)
        if out is not None:
            return write_out(out, result, broadcasts=name == "outer")
        return read_result(as_result(result)) if name == "reduce" else as_result(result)

    def reduce(
        self,
        array: Any,
        axis: Any = 0,
        dtype: Any = None,
        out: Any = None,
        keepdims: bool = False,
        **options: Any,
    ) -> Any:
        """Return the fold of all elements along axes."""
        return self._method(
            "reduce",
            array,
            axis=axis,
            keepdims=keepdims,
            out=out,
            **_drop_none(dtype=dtype),
            **options,
        )

    def accumulate(self, array: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
        """Return the folds of the elements up to each one."""
        return self._method("accumulate", array, axis=axis, out=out, **_drop_none(dtype=dtype))

    def reduceat(
        self, array: Any, indices: Any, axis: int = 0, dtype: Any = None, out: Any = None
    ) -> Any:
        """Return the folds of the slices between indices."""
        return self._method(
            "reduceat", array, indices, axis=axis, out=out, **_drop_none(dtype=dtype)
        )

    def outer(self, A: Any, B: Any, /, **options: Any) -> Any:
        """Return the function of each pair of elements."""
        if find_tensor([A, B]) is None:
            return call_on_host(self.__wrapped_ufunc__.outer, (A, B), options)
        a, b = (self._operand(x) for x in (A, B))
        if isinstance(a, Tensor) and isinstance(b, Tensor):
            a = a.reshape(a.shape + (1,) * b.ndim)
        return self(a, b, **options)

    def at(self, a: Any, indices: Any, b: Any = None, /) -> None:
        """Combine elements of `a` at indices with `b`, in place; a repeated index combines all."""
        operands = () if b is None else (b,)
        if self.__name__ == "add" and _add_at_once(a, indices, b):
            return
        if isinstance(a, Tensor) and b is not None:
            ours = _find_function(self.__wrapped_ufunc__, "at")
            if ours is not None:
                ours(a, indices, self._operand(b))
                return
        if is_tracing():
            raise UnknownFunctionError(
                f"np.{self.__name__}.at: a captured function cannot call it; use dt.index_add"
            )
        call_on_host(self.__wrapped_ufunc__.at, (a, indices, *operands), {})


def _add_at_once(a: Any, indices: Any, b: Any) -> bool:
    """Add values at indices of a small array by the host, in order; return True if done."""
    if type(a) is not ndarray_class() or find_kind(b) not in (a.dtype, float, int):
        return False
    if type(b) is float and a.dtype.kind != "f":
        return False
    has_tape = any(isinstance(x, Tensor) and x.requires_grad for x in (indices, b))
    elements = None if has_tape else editable_array(a)
    if elements is None:
        return False
    with host.errstate(all="ignore"):
        host.add.at(elements, to_host(indices), to_host(b))
    return True


def find_kind(x: Any) -> Any:
    """Return the dtype of a tensor, and the type of others."""
    return x.dtype if isinstance(x, Tensor) else type(x)


def _find_kinds(operands: Sequence[Any]) -> tuple[Any, ...]:
    """Return the dtype of each operand that is a tensor, and the type of others."""
    a = operands[0] if operands else None
    if len(operands) == 1:
        return (a.dtype if isinstance(a, Tensor) else type(a),)
    if len(operands) == 2:
        b = operands[1]
        return (
            a.dtype if isinstance(a, Tensor) else type(a),
            b.dtype if isinstance(b, Tensor) else type(b),
        )
    return tuple([x.dtype if isinstance(x, Tensor) else type(x) for x in operands])


def _find_conversion(kind: Any, dtype: DType) -> Any:
    """Return how an operand of a kind becomes one of a dtype, for `_convert`."""
    if isinstance(kind, DType):
        return None if kind is dtype else dtype
    return NUMBER if kind in NUMPY_SCALARS else None


def _convert(x: Any, conversion: Any) -> Any:
    """Return an operand as dovetail's function gets it: cast, or a NumPy scalar as a number."""
    if conversion is None:
        return x
    return x.item() if conversion is NUMBER else cast(x, conversion)


def _refuse_negative(exponents: Any) -> None:
    """Raise ValueError if an exponent of integers is negative; a captured function reads none."""
    is_array = isinstance(exponents, Tensor)
    if is_array and (exponents.dtype.kind != "i" or not exponents.size or is_tracing()):
        return
    least = exponents.min().item() if is_array else exponents
    if least < 0:
        raise ValueError(
            "power: integers to negative integer powers are not allowed; use x.astype(float)"
        )


def _drop_none(**options: Any) -> dict[str, Any]:
    """Return the options that are not None."""
    return {k: v for k, v in options.items() if v is not None}


def _masked(result: Tensor, where: Any, out: Any) -> Tensor:
    """Return the result where `where` is True, and elements of `out`, or 0, elsewhere."""
    mask = where if isinstance(where, Tensor) else tensor_from(where, device=result.device)
    other = 0 if out is None else out
    chosen: Tensor = select(mask, result, other)
    return cast(chosen, result.dtype)


UFUNCS: dict[str, ufunc] = {
    theirs.__name__: ufunc(theirs)
    for theirs in vars(host).values()
    if isinstance(theirs, host.ufunc)
}


def find_ufunc(theirs: host.ufunc) -> ufunc:
    """Return the ufunc of the namespace, or a new one for a ufunc of another library."""
    ours = UFUNCS.get(theirs.__name__)
    return ours if ours is not None and ours.__wrapped_ufunc__ is theirs else ufunc(theirs)
