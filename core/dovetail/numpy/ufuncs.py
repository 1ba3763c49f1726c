"""NumPy's ufuncs with ndarrays: dovetail's functions, with the dtypes that NumPy's loops have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as host

from ..dtypes import BY_NAME, DType
from ..errors import DTypeError
from ..functions.creation.from_values import asarray as tensor_from
from ..functions.datatypes import cast
from ..functions.elementwise.op_functions import where as select
from ..functions.numpy.protocol import _extra_function, _find_function
from ..functions.numpy.same_names import UnknownFunctionError
from ..tensor.c_fields import set_class
from ..tensor.tensor import Tensor
from .calls import (
    as_ndarray,
    as_result,
    call_on_host,
    find_tensor,
    is_tracing,
    join,
    ndarray_class,
    to_host,
    write_out,
)

PLANS_MAX = 256  # combinations of operands that a ufunc remembers

NUMPY_SCALARS = frozenset(d.__numpy_dtype__.type for d in BY_NAME.values() if d.__numpy_dtype__)
NUMBER_TYPES = NUMPY_SCALARS | {bool, int, float, complex}
NUMBER = "number"  # the conversion of a NumPy scalar to a Python number
# The dtype to which each operand is cast, and the dtypes of the results.
Plan: TypeAlias = tuple[tuple[DType | None, ...], tuple[DType, ...]]


class ufunc:
    """A function of elements: NumPy's ufunc of this name, for ndarrays.

    Attributes such as `nin` and `identity` are those of NumPy's ufunc.

    - `theirs`: NumPy's ufunc.
    """

    def __init__(self, theirs: host.ufunc) -> None:
        self.__wrapped_ufunc__ = theirs
        self.__name__, self.__doc__ = theirs.__name__, theirs.__doc__
        self._ours: Callable[..., Any] | None = None
        # By kinds of operands: how each is converted; () if none is.
        self._direct: dict[tuple[Any, ...], tuple[Any, ...]] = {}
        self._plans: dict[tuple[Any, ...], Plan] = {}

    def __repr__(self) -> str:
        return f"<ufunc '{self.__name__}'>"

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__wrapped_ufunc__, name)

    def __reduce__(self) -> str | tuple[Any, ...]:
        return ufunc, (self.__wrapped_ufunc__,)

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Return the function of the operands, on the device of the tensors among them.

        Raises: TypeError if NumPy has no loop for the dtypes.
        """
        ends_are_numbers = args and type(args[0]) in NUMBER_TYPES and type(args[-1]) in NUMBER_TYPES
        if ends_are_numbers and len(args) <= 2 and not options:
            return self.__wrapped_ufunc__(*args)
        kinds = tuple([a.dtype if isinstance(a, Tensor) else type(a) for a in args])
        if not options:
            casts = self._direct.get(kinds)
            if casts is not None:
                return set_class(
                    self._ours(*[_convert(a, d) for a, d in zip(args, casts, strict=True)])  # type: ignore[misc]  # set before
                    if casts
                    else self._ours(*args),  # type: ignore[misc]  # set before
                    ndarray_class(),
                )
            if all(k in NUMBER_TYPES for k in kinds):
                return self.__wrapped_ufunc__(*args)
        if find_tensor([*args, *options.values()]) is None:
            return call_on_host(self.__wrapped_ufunc__, args, options)
        return self._call(args, kinds, **options)

    def _call(
        self,
        args: tuple[Any, ...],
        kinds: tuple[Any, ...],
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
        outs = out if isinstance(out, tuple) else (out,) * theirs.nout
        ours = self._ours = (
            self._ours or _find_function(theirs, "__call__") or _extra_function(theirs)
        )
        if ours is None or others:
            if is_tracing():
                raise UnknownFunctionError(
                    f"np.{self.__name__}: dovetail has no such function, so a captured function "
                    "cannot call it"
                )
            return call_on_host(
                theirs,
                args,
                {"out": out, "where": where, "casting": casting, "dtype": dtype} | others,
            )
        operands = [self._operand(a) for a in args]
        casts, dtypes = self._plan(operands, dtype)
        converts = tuple(
            [
                None if getattr(x, "dtype", d) is d else d if isinstance(x, Tensor) else NUMBER
                for x, d in zip(operands, casts, strict=True)
            ]
        )
        values = [_convert(x, d) for x, d in zip(operands, converts, strict=True)]
        result = ours(*values)
        results = result if isinstance(result, tuple) else (result,)
        typed = [r if r.dtype is d else cast(r, d) for r, d in zip(results, dtypes, strict=True)]
        if where is not True:
            typed = [_masked(r, where, o) for r, o in zip(typed, outs, strict=True)]
        if dtype is None and where is True and typed[0] is result and len(args) == len(operands):
            is_direct = all(x is a is not result for x, a in zip(operands, args, strict=True))
            if is_direct and len(self._direct) < PLANS_MAX:
                self._direct[kinds] = converts if any(converts) else ()
        final = tuple(
            [
                as_result(r) if o is None else write_out(o, r, casting)
                for r, o in zip(typed, outs, strict=True)
            ]
        )
        return final if len(final) > 1 else final[0]

    def _operand(self, a: Any) -> Any:
        """Return an operand as a tensor or a Python number."""
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

    def _plan(self, operands: list[Any], dtype: Any) -> Plan:
        """Return the casts of the operands and the dtypes of the results, by NumPy's promotion.

        Raises: TypeError if NumPy has no loop for the dtypes.
        """
        theirs = self.__wrapped_ufunc__
        kinds = tuple([a.dtype if isinstance(a, Tensor) else type(a) for a in operands])
        key = (kinds, dtype)
        plan = self._plans.get(key)
        if plan is None:
            dtypes_in = [d.__numpy_dtype__ if isinstance(d, DType) else d for d in kinds]
            weak = [d if d in (int, float, complex) else host.dtype(d) for d in dtypes_in]
            options: dict[str, Any] = {}
            if dtype is not None:
                wanted = host.dtype(to_host(dtype))
                options = {
                    "signature": (*(None,) * theirs.nin, *(wanted,) * theirs.nout),
                    "casting": "unsafe",
                }
            loop = theirs.resolve_dtypes((*weak, *(None,) * theirs.nout), **options)
            named = [BY_NAME[d.name] for d in loop]
            plan = tuple(named[: theirs.nin]), tuple(named[theirs.nin :])
            if len(self._plans) < PLANS_MAX:
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
            if dtype is not None:
                options["dtype"] = BY_NAME[host.dtype(dtype).name]
            result = ours(self._operand(x), *args, **options)
        return as_result(result) if out is None else write_out(out, result)

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


def _convert(x: Any, conversion: Any) -> Any:
    """Return an operand as dovetail's function gets it: cast, or a NumPy scalar as a number."""
    if conversion is None:
        return x
    return x.item() if conversion is NUMBER else cast(x, conversion)


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
