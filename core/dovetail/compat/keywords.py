"""Parameters by the names of NumPy, PyTorch and JAX: `dim=`, `keepdim=`, `size=`, `a=`.

A call comes here if it does not bind, or has a name that the function lacks. A name that means the
same is translated; for any other, the error says what to write. The names are Python tables, and
not data as the hints: a translation is no error, and `x.sum(dim=0)` should not read files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from inspect import Parameter, Signature, signature
from typing import Any, TypeAlias, TypeVar

from ..errors import ArgumentTypeError

Parameters: TypeAlias = Mapping[str, Parameter]
Options: TypeAlias = dict[str, Any]
R = TypeVar("R")


class _Missing:
    """The default of a parameter without which a function cannot be called."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "..."


MISSING: Any = _Missing()
POSITIONAL_KINDS = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
VARIADIC_KINDS = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)

KEYWORD_EQUIVALENTS = {  # theirs: ours, of which a function has one
    "dim": "axis axes", "dims": "axis axes repetitions", "axes": "axis order dim", "axis":
    "axes dim", "keepdim": "keepdims", "keepdims": "keepdim", "size": "shape", "newshape": "shape",
    "sizes": "shape", "reps": "repetitions", "steps": "num", "end": "stop", "diagonal": "k offset",
    "offset": "k", "k":
    "offset", "ddof": "correction", "axis1": "dim1", "axis2": "dim2", "shifts": "shift", "a_min":
    "min", "a_max": "max", "N": "n_rows", "M": "n_cols", "n": "n_rows", "m": "n_cols", "row": "n",
    "col": "m", "loc": "mean", "scale": "std", "p": "ord", "split_size_or_sections": "sizes",
    "indices_or_sections": "sections", "chunks": "sections", "fweights": "weights", "stdev": "std",
    "in_dims": "in_axes", "out_dims": "out_axes",
    "argnum": "argnums", "device": "spec", "pyfunc": "function",
    "body_fun": "body", "body_fn": "body", "cond_fun": "cond", "cond_fn": "cond",
    "init_val": "init", "carried_inputs": "init", "true_fun": "true_fn", "false_fun": "false_fn",
    "arg_nums": "argnums", "func": "function", "fun": "function",
    "fill": "fill_value", "minval": "low", "maxval": "high",
}  # fmt: skip
FIRST_OPERAND_NAMES = frozenset(
    [
        "input",
        "self",
        "a",
        "x",
        "arr",
        "ary",
        "array",
        "arrays",
        "m",
        "v",
        "tensors",
        "tup",
        "seq",
        "xs",
        "element",
        "elements",
        "obj",
        "object",
        "A",
        "p",
        "tensor",
        "condition",
        "data",
    ]
)
SECOND_OPERAND_NAMES = frozenset(
    [
        "other",
        "y",
        "b",
        "x2",
        "B",
        "exponent",
        "test_element",
        "test_elements",
        "mat2",
        "vec2",
        "indices",
        "index",
        "sections",
        "q",
        "repeats",
        "target",
        "power",
    ]
)
FUNCTION_KEYWORD_EQUIVALENTS = {  # function, theirs: ours
    ("where", "x"): "x1",
    ("where", "y"): "x2",
    ("where", "input"): "x1",
    ("where", "self"): "x1",
    ("where", "other"): "x2",
    ("finfo", "dtype"): "type",
    ("iinfo", "int_type"): "type",
    ("iinfo", "dtype"): "type",
    ("from_dlpack", "ext_tensor"): "x",
    ("swapaxes", "dim0"): "axis1",
    ("swapaxes", "dim1"): "axis2",
}
_ANY = object()
NEUTRAL_VALUES: dict[str, tuple[object, ...]] = {  # the values that change nothing
    "order": ("C", "K", "A", None), "precision": (None,), "preferred_element_type": (None,),
    "subok": (_ANY,), "like": (None,), "casting": ("same_kind", "unsafe"),
    "out": (None,), "dtype": (None,), "where": (True, None), "initial": (None,),
    "layout": (None,), "memory_format": (None,), "pin_memory": (False,), "non_blocking": (_ANY,),
    "generator": (None,), "kind": (_ANY,), "stable": (_ANY,), "sorted": (True,), "force": (_ANY,),
    "as_tuple": (True,), "alpha": (1,), "rounding_mode": (None,), "requires_grad": (False, None),
    "overwrite_input": (_ANY,), "check_finite": (_ANY,), "optimize": (_ANY,), "device": (None,),
    "allow_int": (False,), "holomorphic": (False,), "has_aux": (False,), "reduce_axes": ((),),
    "chunk_size": (None,), "unroll": (_ANY,), "cache": (_ANY,), "excluded": (None,),
    "strict": (False,), "spmd_axis_name": (None,),
    "indices_are_sorted": (_ANY,), "unique_indices": (_ANY,), "bucket_size": (None,),
    "weights_only": (_ANY,), "dynamic": (_ANY,), "inline": (_ANY,),
}  # fmt: skip
KEYWORD_ADVICE = {
    "where": "use dt.where(mask, x, neutral_value) or x[mask] as the operand",
    "initial": "combine it with the result: dt.maximum(x.max(), initial), initial + x.sum()",
    "dtype": "cast with x.astype(dtype)",
    "alpha": "use x + alpha * y",
    "rounding_mode": "use dt.floor_divide to round down, dt.trunc(x / y) to round towards 0",
    "order": "the order is always row-major; for columns pass x.mT or x.T",
    "memory_format": "strides are always row-major; use x.permute_dims or x.contiguous",
    "pin_memory": "use x.pin_memory()",
    "generator": "use the methods of dt.random.default_rng(seed)",
    "key": "use the methods of dt.random.default_rng(seed)",
    "out": "assign the result: z[...] = result",
    "as_tuple": "use dt.argwhere for indices as one tensor",
    "precision": "products of float32 are always computed in float32",
    "preferred_element_type": "cast with x.astype(dtype)",
    "device": "move the result with x.to(device)",
    "requires_grad": "use x.requires_grad_()",
    "sorted": "values are always sorted",
    "static_argnums": "use static_argnames=; ints, bools and strings are always static",
    "donate_argnums": "write in place instead: u += ...",
    "donate_argnames": "write in place instead: u += ...",
    "allow_int": "integers have no gradients; use x.astype(dt.float32)",
    "holomorphic": "the function must return a real number, such as dt.real(f(x))",
    "has_aux": "use dt.func.grad or dt.func.value_and_grad",
    "argnames": "use argnums= with the positions of arguments",
    "chunk_size": "use dt.vmap, which has it",
    "axis_name": "compute what all examples share outside of the function",
    "axis_size": "the size is that of the mapped arguments",
    "in_shardings": "the function runs on one device",
    "UPLO": "only the lower triangle is read; pass x.mT for the upper one",
    "value": "use constant_values=, and widths ((before, after), ...) with the first axis first",
}
FUNCTION_KEYWORD_ADVICE = {  # for one function
    ("jit", "mode"): "there is only one mode",
    ("can_cast", "casting"): "dt.can_cast follows type promotion only",
    ("svd", "compute_uv"): "use dt.linalg.svdvals(x), which returns the singular values alone",
    ("svd", "hermitian"): "use dt.linalg.eigh, whose values have a sign",
    ("svd", "some"): "use full_matrices=False for some=True",
    ("vectorize", "otypes"): "use dtype= for the result's dtype",
    ("vectorize", "excluded"): "use functools.partial(f, ...) to fix arguments",
    ("vectorize", "signature"): "the function is called with numbers; use dt.vmap for rows",
    ("load", "weights_only"): "files hold numbers only; use pickle.load for objects",
    ("load", "map_location"): "use device= for the device of the tensors",
    ("load", "mmap_mode"): ".safetensors files are always memory-mapped",
    ("load", "allow_pickle"): "files hold numbers only; use pickle.load for objects",
}
FUNCTION_NEUTRAL_VALUES: dict[tuple[str, str], tuple[object, ...]] = {
    ("load", "weights_only"): (True,),
    ("svd", "compute_uv"): (True,),
    ("svd", "hermitian"): (False,),
    ("load", "mmap_mode"): (None,),
    ("load", "allow_pickle"): (False,),
    ("load", "map_location"): (None,),
}
FUNCTION_ADVICE = {
    "save": "pass the tensors as one dict: dt.save(file, {'x': x})"
}  # for any foreign name
EXTRA_ARGUMENTS = {  # parameters that NumPy takes by position behind ours
    name: order.split()
    for name, order in {
        "allclose": "rtol atol equal_nan",
        "argsort": "kind",
        "array_equal": "equal_nan",
        "array_split": "axis",
        "astype": "order casting subok copy",
        "average": "returned",
        "cond": "ord",
        "convolve": "mode",
        "copy": "order",
        "corrcoef": "rowvar",
        "correlate": "mode",
        "cov": "rowvar",
        "diff": "n axis prepend append",
        "digitize": "right",
        "eye": "k dtype",
        "fftfreq": "d",
        "geomspace": "endpoint dtype",
        "histogram": "range density weights",
        "histogram2d": "range density weights",
        "histogram_bin_edges": "range",
        "isclose": "rtol atol equal_nan",
        "linspace": "endpoint",
        "logspace": "endpoint base dtype",
        "qr": "mode",
        "rfftfreq": "d",
        "searchsorted": "side sorter",
        "sort": "kind",
        "svd": "full_matrices compute_uv hermitian",
        "tensordot": "axes",
        "trace": "offset axis1 axis2",
        "trapezoid": "dx axis",
        "tri": "k dtype",
        "vander": "increasing",
        "vector_norm": "ord axis keepdims",
    }.items()
}
SAMPLER_ARGUMENTS = {  # of all that NumPy takes by position, if a call has as many
    "normal": ("mean", "std", "shape"),
    "uniform": ("low", "high", "shape"),
}
# With dim= PyTorch's functions return two results, or divide by n - 1, so dim= is not translated.
INDEX_FUNCTIONS = {
    "max": "dt.argmax(x, axis={}) for indices",
    "min": "dt.argmin(x, axis={}) for indices",
    "sort": "dt.argsort(x, axis={}) for indices",
    "median": "dt.quantile(x, 0.5, axis={}, method='lower') for PyTorch's values",
    "nanmedian": "dt.nanquantile(x, 0.5, axis={}, method='lower') for PyTorch's values",
}
VARIANCE_FUNCTIONS = ("std", "var")
SCALED_FUNCTIONS = ("add", "add_", "subtract", "subtract_")  # PyTorch's have `alpha`, of x2
DIVISOR_KEYWORDS = ("correction", "unbiased", "ddof")


def raw_signature(function: Callable[..., Any]) -> Signature:
    """Return the signature with the parameters that a public function hides (`public_names`)."""
    shown: Any = getattr(function, "__dict__", {}).get("__signature__")
    return shown.raw() if hasattr(shown, "raw") else signature(function)


@lru_cache(512)
def parameters(function: Callable[..., Any]) -> Parameters:
    """Return the parameters of a function, without `more` and `theirs`; cached."""
    every = raw_signature(function).parameters
    return {n: p for n, p in every.items() if n not in ("more", "theirs")}


def accepts_arguments(
    function: Callable[..., Any], args: tuple[Any, ...], options: Options
) -> bool:
    """Return True if the function's signature accepts these arguments."""
    try:
        raw_signature(function).bind(*args, **options)
    except TypeError:
        return False
    return True


def call_translated(
    call: Callable[..., R], function: Callable[..., R], args: tuple[Any, ...], options: Options
) -> R:
    """Call `call` with foreign names translated; let the result require a gradient if asked.

    `requires_grad=True` is handled here for functions that create tensors and lack the name.
    Raises: ArgumentTypeError for a name that has no equal.
    """
    own = parameters(function)  # functions that create tensors have a `device`
    requires_grad = options.get("requires_grad") and "requires_grad" not in own and "device" in own
    if requires_grad:
        options = {k: v for k, v in options.items() if k != "requires_grad"}
    positional, named = translate(function, args, options)
    result = call(*positional, **named)
    if requires_grad:
        result.requires_grad_()  # type: ignore[attr-defined]  # only functions that create tensors
    return result


def rebind_keywords(function: Callable[..., R], scope: Options) -> R:
    """Call a function again from its locals `scope`, with names in its `**theirs` translated.

    Raises: ArgumentTypeError for a name without an equal, or an argument in `*more` without a name.
    """
    own = {k: scope[k] for k, p in parameters(function).items() if scope[k] is not p.default}
    args: list[Any] = []
    for name, p in parameters(function).items():
        if p.kind is not p.POSITIONAL_ONLY:
            break
        args.append(own.pop(name, p.default))
    listed = next((n for n, p in parameters(function).items() if p.kind is p.VAR_POSITIONAL), "")
    if extra := own.pop(listed, ()) or scope.get("more", ()):
        for name, p in parameters(function).items():
            if p.kind is p.POSITIONAL_OR_KEYWORD:
                args.append(own.pop(name, p.default))
        args += extra
    return call_translated(function, function, tuple(args), {**own, **scope["theirs"]})


def translate(
    function: Callable[..., Any], args: tuple[Any, ...], options: Options
) -> tuple[list[Any], Options]:
    """Translate foreign names to those of `function`; return arguments by position and by name.

    Raises: ArgumentTypeError for a name without an equal, one given twice, or a missing argument.
    """
    name, own = function.__name__, parameters(function)
    positional = [n for n, p in own.items() if p.kind in POSITIONAL_KINDS]
    takes_all = any(p.kind is p.VAR_POSITIONAL for p in own.values())
    extra = args[len(positional) :]
    if extra and not takes_all:
        args, named = _name_arguments(function, positional, args)
        options, extra = {**named, **options}, ()
    values = {n: v for n, v in zip(positional, args, strict=False) if v is not MISSING}
    require_same_results(name, options)
    alpha = options.get("alpha", 1) if name in SCALED_FUNCTIONS else 1
    if alpha != 1:
        options = {**options, "alpha": 1}
    for theirs, value in options.items():
        if theirs in own and own[theirs].kind is Parameter.VAR_POSITIONAL and not extra:
            extra = (value,)  # all of them at once
            continue
        if theirs in own and own[theirs].kind not in VARIADIC_KINDS:
            pair: tuple[str, Any] | None = (theirs, value)
        else:
            pair = translate_keyword(function, theirs, value, positional)
        if pair is None:
            continue
        if pair[0] in values:
            also = "" if pair[0] == theirs else f" (also as {theirs})"
            raise ArgumentTypeError(f"{name}: {pair[0]} is given twice{also}; pass it once")
        values[pair[0]] = pair[1]
    if name == "arange" and "stop" in values:
        values.setdefault("start", 0)
    for n, p in own.items():
        if (
            n not in values
            and p.kind not in VARIADIC_KINDS
            and p.default in (Parameter.empty, MISSING)
        ):
            raise ArgumentTypeError(f"{name}: missing argument {n}; {_name_parameters(own)}")
    if alpha != 1:
        values["x2"] = alpha * values["x2"]
    return _split(own, values, extra)


def _name_arguments(
    function: Callable[..., Any], positional: list[str], args: tuple[Any, ...]
) -> tuple[tuple[Any, ...], Options]:
    """Return the arguments by position, and by name those that dovetail accepts by name only.

    They are named by the order of NumPy's parameters, else by their kind: a tensor is `out`, a bool
    `keepdims`, a dtype `dtype`; None is a default.
    Raises: ArgumentTypeError for an argument without a name.
    """
    name, own, count = function.__name__, parameters(function), len(positional)
    of_object = 1 if positional[:1] == ["self"] else 0
    every = SAMPLER_ARGUMENTS.get(name, ())
    if every and len(args) - of_object == len(every):
        return args[:of_object], dict(zip(every, args[of_object:], strict=True))
    order, named = EXTRA_ARGUMENTS.get(name, []), Options()
    for k, value in enumerate(args[count:]):
        if value is None and k >= len(order):
            continue
        parameter = order[k] if k < len(order) else _parameter_of_kind(value)
        if parameter in named or (k >= len(order) and parameter not in own):
            raise _too_many_arguments_error(function, count, len(args))
        named[parameter] = value
    return args[:count], named


def _parameter_of_kind(value: object) -> str:
    """Return the parameter that a value can only be meant for, "" if there is none."""
    if isinstance(value, bool):
        return "keepdims"
    if hasattr(value, "ndim"):
        return "out"
    return "dtype" if isinstance(value, (type, str)) or hasattr(value, "itemsize") else ""


def _split(own: Parameters, values: Options, extra: tuple[Any, ...]) -> tuple[list[Any], Options]:
    """Return values by position (defaults in gaps; all possible before `extra`), others by name."""
    positional: list[Any] = []
    named = dict(values)
    by_place = [n in values and p.kind is p.POSITIONAL_ONLY for n, p in own.items()]
    last = max((i for i, is_given in enumerate(by_place) if is_given), default=-1)
    for i, (n, p) in enumerate(own.items()):
        if i <= last or (extra and p.kind in POSITIONAL_KINDS):
            positional.append(named.pop(n, p.default))
    return [*positional, *extra], named


def translate_keyword(
    function: Callable[..., Any], keyword: str, value: Any, positional: list[str]
) -> tuple[str, Any] | None:
    """Return (our parameter, its value) for a foreign keyword, or None if it changes nothing.

    Raises: ArgumentTypeError, with advice, for a keyword without an equal.
    """
    name, own = function.__name__, parameters(function)
    if name in FUNCTION_ADVICE:
        raise ArgumentTypeError(f"{name}: has no parameter {keyword}; {FUNCTION_ADVICE[name]}")
    if (name, keyword) in FUNCTION_KEYWORD_EQUIVALENTS:
        return FUNCTION_KEYWORD_EQUIVALENTS[name, keyword], value
    for ours in KEYWORD_EQUIVALENTS.get(keyword, "").split():
        if ours in own and own[ours].kind not in VARIADIC_KINDS:
            return ours, value
    if keyword == "unbiased" and "correction" in own:
        return "correction", int(bool(value))
    if keyword == "right" and "side" in own:
        return "side", "right" if value else "left"
    nothing = FUNCTION_NEUTRAL_VALUES.get((name, keyword)) or NEUTRAL_VALUES.get(keyword, ())
    if any(v is _ANY or (type(v) is type(value) and v == value) for v in nothing):
        return None
    if keyword not in KEYWORD_ADVICE or keyword in own:
        if keyword in FIRST_OPERAND_NAMES and positional:
            return positional[0], value
        if keyword in SECOND_OPERAND_NAMES and len(positional) > 1:
            return positional[1], value
    way = (
        "pass the two axes by position: dt.transpose(x, 0, 1)"
        if name == "transpose"
        else FUNCTION_KEYWORD_ADVICE.get((name, keyword)) or KEYWORD_ADVICE.get(keyword)
    )
    says = f"; {way}" if way else f"; {_name_parameters(own)}"
    raise ArgumentTypeError(f"{name}: has no parameter {keyword}{says}")


def require_same_results(name: str, options: Options) -> None:
    """Raise ArgumentTypeError for `dim` where PyTorch's function returns something else."""
    if "dim" not in options:
        return
    dim = options["dim"] if isinstance(options["dim"], int) else "..."
    if name in INDEX_FUNCTIONS:
        raise ArgumentTypeError(
            f"{name}: dovetail returns values only; use "
            f"dt.{name}(x, axis={dim}), and {INDEX_FUNCTIONS[name].format(dim)}"
        )
    if name in VARIANCE_FUNCTIONS and not any(d in options for d in DIVISOR_KEYWORDS):
        raise ArgumentTypeError(
            f"{name}: dovetail divides by n; use dt.{name}(x, axis={dim}), or "
            f"dt.{name}(x, axis={dim}, correction=1) to divide by n - 1 as PyTorch does"
        )


def _name_parameters(own_parameters: Parameters) -> str:
    """Return parameters as text for an error: "the parameters are x, *more, axis="."""
    own_parameters = {n: p for n, p in own_parameters.items() if n != "self"}
    named = [f"*{n}" if p.kind is p.VAR_POSITIONAL else n for n, p in own_parameters.items()]
    by_place = [
        n
        for n, p in zip(named, own_parameters.values(), strict=True)
        if p.kind is p.POSITIONAL_ONLY
    ]
    rest = [n if n.startswith("*") else f"{n}=" for n in named if n not in by_place]
    text = ", ".join([*by_place, *rest])
    return f"the parameters are {text}" if text else "it has no parameters"


def _too_many_arguments_error(
    function: Callable[..., Any], accepted: int, passed: int
) -> ArgumentTypeError:
    """Return the error for too many positional arguments, with the parameters' names."""
    mine = dict(parameters(function))
    if mine.pop("self", None) is not None:
        accepted, passed = accepted - 1, passed - 1
    accepted_text = (
        f"at most {accepted} positional argument{'s' * (accepted != 1)}"
        if accepted
        else "no positional arguments"
    )
    named = [f"{n}=" for n, p in mine.items() if p.kind is p.KEYWORD_ONLY]
    says = f"; keyword arguments are {', '.join(named)}" if named else ""
    several = OPERAND_COUNT_ADVICE.get(function.__name__, "")
    places = [n for n, p in mine.items() if p.kind in POSITIONAL_KINDS]
    of = f" ({', '.join(places)})" if places else ""
    return ArgumentTypeError(
        f"{function.__name__}: expected {accepted_text}{of}, got {passed}{says}{several}"
    )


OPERAND_COUNT_ADVICE = {
    "repeat": "; use dt.tile(x, (2, 1)) for PyTorch's repeat, x.repeat(2, axis=1) for NumPy's",
    "tile": "; pass the repetitions as one tuple: dt.tile(x, (2, 1))",
    "concat": "; pass the tensors as one list: dt.concat([x, y])",
    "stack": "; pass the tensors as one list: dt.stack([x, y])",
    "flip": "; pass the axes as one tuple: x.flip((0, 1))",
    "max": "; for two tensors use dt.maximum",
    "min": "; for two tensors use dt.minimum",
}
