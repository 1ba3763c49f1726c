"""Exact synonyms: names of NumPy, PyTorch and JAX that dovetail accepts for its own.

A name is here if every call that both libraries accept gives the same result. The packages resolve
these names when they are first used; `dir` lists dovetail's own names only.
"""

from __future__ import annotations

ALIASES: dict[str, dict[str, str]] = {  # package of `dt`, or Tensor -> {ours: theirs}
    "": {
        "abs": "absolute",
        "acos": "arccos",
        "acosh": "arccosh",
        "array_split": "tensor_split",
        "asarray": "as_tensor asanyarray from_numpy",
        "asin": "arcsin",
        "asinh": "arcsinh",
        "atan": "arctan",
        "atan2": "arctan2",
        "atanh": "arctanh",
        "bitwise_invert": "bitwise_not invert",
        "bitwise_left_shift": "left_shift",
        "bitwise_right_shift": "right_shift",
        "bool": "bool_",
        "broadcast_arrays": "broadcast_tensors",
        "clip": "clamp",
        "complex128": "cdouble",
        "complex64": "cfloat csingle",
        "concat": "concatenate",
        "conj": "conjugate",
        "copy": "clone",
        "cumulative_logsumexp": "logcumsumexp",
        "cumulative_prod": "cumprod",
        "cumulative_sum": "cumsum",
        "default_device": "get_default_device",
        "deg2rad": "radians",
        "divide": "div true_divide",
        "equal": "eq",
        "expand_dims": "unsqueeze",
        "eye": "identity",
        "float16": "half",
        "float32": "float single",
        "float64": "double",
        "greater": "gt",
        "greater_equal": "ge",
        "hann": "hanning",
        "int16": "short",
        "int32": "intc",
        "int64": "int_ long",
        "jit": "compile",
        "less": "lt",
        "less_equal": "le",
        "linalg.block_diag": "block_diag",
        "linalg.cholesky": "cholesky",
        "linalg.det": "det",
        "linalg.expm": "matrix_exp",
        "linalg.inv": "inverse",
        "linalg.matrix_power": "matrix_power",
        "linalg.pinv": "pinverse",
        "linalg.qr": "qr",
        "linalg.slogdet": "slogdet",
        "linalg.vector_norm": "norm",
        "matmul": "bmm mm mv",
        "moveaxis": "movedim",
        "multiply": "mul",
        "negative": "neg",
        "not_equal": "ne",
        "outer": "ger",
        "permute_dims": "permute",
        "pow": "power",
        "rad2deg": "degrees",
        "random.get_state": "get_rng_state",
        "random.manual_seed": "manual_seed",
        "random.permutation": "randperm",
        "random.rand": "rand",
        "random.rand_like": "rand_like",
        "random.randint": "randint",
        "random.randn": "randn",
        "random.randn_like": "randn_like",
        "random.set_state": "set_rng_state",
        "remainder": "mod",
        "result_type": "promote_types",
        "round": "around",
        "subtract": "sub",
        "swapaxes": "swapdims",
        "trapezoid": "trapz",
        "uint64": "uint ulong",
        "unstack": "unbind",
        "vstack": "row_stack",
    },
    "random": {
        "manual_seed": "seed",
        "normal": "standard_normal",
        "uniform": "random random_sample ranf sample",
    },
    "Generator": {"normal": "standard_normal", "uniform": "random"},
    "Tensor": {
        "atan2": "arctan2",
        "matmul": "bmm mm mv",
        "numel": "nelement",
        "unstack": "unbind",
    },
}

FUNCTION_METHODS = frozenset(["argwhere", "istft", "outer", "searchsorted", "stft"])
"""Functions of `dt` that are methods in NumPy or PyTorch; so are the synonyms in `linalg`."""

DEVICE_METHODS = frozenset(["cpu", "cuda", "mps", "xpu"])
"""Types of devices to which a method moves a tensor: `x.cuda()`; `x.is_cuda` asks for its type."""


def find_original(owner: str, name: str) -> str | None:
    """Return dovetail's own name for a synonym in a package of `dt` or a class, or None."""
    return _ORIGINALS.get(owner, {}).get(name)


_ORIGINALS = {
    owner: {theirs: ours for ours, names in pairs.items() for theirs in names.split()}
    for owner, pairs in ALIASES.items()
}
