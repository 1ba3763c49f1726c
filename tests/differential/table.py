"""The row of the differential suite, and the namespaces that the rows must cover."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import dovetail as dt

from differential.inputs import Shapes

NAMESPACES: dict[str, Any] = {
    "dt": dt, "dt.linalg": dt.linalg, "dt.fft": dt.fft, "F": dt.nn.functional,
}  # fmt: skip


@dataclass(frozen=True)
class Row:
    """A call and its oracle, as Python expressions of the operands.

    The row tests the first function or method of dovetail in `call`. In `oracle` the operands are
    NumPy arrays, floats as float64; PyTorch tensors if it names `torch` or `F`.
    """

    call: str
    oracle: str = ""
    """Empty: the same expression with `np` in place of `dt`."""
    of: str = "iuhf"
    """Compared dtypes: b bool, i int, u uint, h half, f float32 and float64, c complex.
    Of others the call gives some result, or an error of dovetail's."""
    shapes: str | Shapes = "any"
    ulps: float = 2
    """Error of a float result in units in the last place; that of halves is 1 after rounding."""
    scale: str = ""
    """Size of the terms that cancel each other, whose unit in the last place counts if larger."""
    gives: str = ""
    """dtype of the result if it is not that of the operands."""
    zeros: bool = False
    """Whether zeros must have the oracle's signs."""
    layouts: bool = True
    """Whether other memory layouts give the same result."""
    but: Mapping[str, str] = field(default_factory=dict)
    """Reasons not to compare with the oracle, by material, dtype or `dtype material`."""

    @property
    def name(self) -> str:
        """Return the public name that the row tests."""
        names = (n for n in _NAME.findall(self.call) if _is_method(n) or _is_function(n))
        return next(names, "operator")

    @property
    def expected(self) -> str:
        """Return the oracle's expression."""
        return self.oracle or self.call.replace("dt.", "np.")

    @property
    def uses_torch(self) -> bool:
        return bool(re.search(r"\b(torch|F)\.", self.expected))

    @property
    def writes(self) -> bool:
        """Return True if the call writes into x."""
        return self.call.startswith("W(") or self.name.endswith("_")

    def takes(self, d: dt.DType) -> bool:
        letter = "h" if d.name in ("float16", "bfloat16") else d.kind
        return letter in self.of

    def exception(self, d: dt.DType, material: str) -> bool:
        """Return True if the row gives a reason not to compare these operands with the oracle."""
        return not {d.name, material, f"{d.name} {material}"}.isdisjoint(self.but)


_NAME = re.compile(r"\b((?:dt|F|x)(?:\.\w+)+)")


def _find(name: str) -> Any:
    owner, _, last = name.rpartition(".")
    return getattr(NAMESPACES.get(owner), last, None)


def _is_method(name: str) -> bool:
    owner, _, last = name.partition(".")
    return owner == "x" and hasattr(dt.Tensor, last)


def _is_function(name: str) -> bool:
    found = _find(name)
    return callable(found) and not inspect.isclass(found)


def functions() -> list[str]:
    """Return the names of all public functions of the namespaces."""
    return [
        f"{prefix}.{name}" for prefix, module in NAMESPACES.items() for name in module.__all__
        if _is_function(f"{prefix}.{name}") and type(getattr(module, name)) is not dt.DType
    ]  # fmt: skip


def methods() -> list[str]:
    """Return the names of all methods and properties of tensors that are not functions of `dt`."""
    found = [n for n in dir(dt.Tensor) if not n.startswith("_")]
    return [
        f"x.{n}" for n in found
        if n not in dt.__all__ or inspect.getattr_static(dt.Tensor, n) is not getattr(dt, n)
    ]  # fmt: skip


def group(lines: str, **alike: Any) -> list[Row]:
    """Return a row for each line `call | oracle`; all have the same other fields."""
    pairs = [line.strip().partition(" | ") for line in lines.strip().splitlines()]
    return [Row(call, expected, **alike) for call, _, expected in pairs]


_RUNS = "it says how or where work runs"
_GRADIENT = "gradients have tests of their own (tests/autograd)"
_KERNEL = "kernels and functions of the user's own (tests/frontend, tests/ir)"
_TRANSFORM = "a transform of functions (tests/func, tests/functions/test_control_flow.py)"
_MEMORY = "it tells or changes where a tensor's memory is (tests/tensor, tests/memory)"
_RANDOM = "it draws random numbers (tests/functions/test_random.py)"
_FILES = "it reads or writes files (tests/functions/test_files.py)"
_SETTING = "a setting (tests/test_settings.py, tests/functions/test_default_dtype.py)"
_SPEC = "it tells of dtypes, devices or strides, not of values"
_TORCH = "compared with PyTorch (tests/functions/test_aliases.py, tests/nn/test_flex_attention.py)"
_INDEXED = (
    "compared with PyTorch, JAX and definitions (tests/functions/test_index_reductions.py, "
    "test_torch_order_functions.py)"
)
EXEMPT: dict[str, str] = {
    "x.at": "its methods are compared with JAX in tests/functions/test_functional_updates.py",
    **dict.fromkeys(
        ["dt.histc", "dt.index_copy", "dt.index_fill", "dt.kthvalue", "dt.masked_scatter",
         "dt.mode", "dt.renorm", "dt.scatter_add", "dt.segment_max", "dt.segment_mean",
         "dt.segment_min", "dt.segment_prod", "dt.segment_sum", "dt.unique_consecutive"],
        _INDEXED),
    **dict.fromkeys(
        ["dt.istft", "dt.stft"], "compared with PyTorch and SciPy (tests/fft/test_short_time.py)"
    ),
    "F.ctc_loss": "compared with PyTorch and its definition (tests/nn/test_ctc_loss.py)",
    **dict.fromkeys(["F.create_block_mask", "F.flex_attention", "dt.linalg.norm"], _TORCH),
    **dict.fromkeys(
        ["dt.addcdiv", "dt.addcmul", "dt.addmm", "dt.addmv", "dt.amax", "dt.amin", "dt.array",
         "dt.baddbmm", "dt.cdist", "dt.diag_embed", "dt.float_power", "dt.gather",
         "dt.index_select", "dt.is_tensor", "dt.lerp", "dt.logdet", "dt.masked_select",
         "dt.narrow", "dt.repeat_interleave", "dt.take_along_dim", "dt.unflatten"], _TORCH),
    **dict.fromkeys(
        ["dt.current_stream", "dt.default_stream", "dt.stream", "dt.synchronize", "dt.evaluate",
         "dt.explain", "dt.show", "dt.draw_graph", "dt.profile"], _RUNS),
    **dict.fromkeys(
        ["dt.grad", "dt.is_grad_enabled", "dt.is_inference_mode_enabled", "x.backward", "x.grad",
         "x.grad_fn", "x.is_leaf", "x.register_hook", "x.requires_grad", "x.requires_grad_",
         "x.retain_grad", "x.detach_"], _GRADIENT),
    **dict.fromkeys(
        ["dt.atomic_add", "dt.atomic_and", "dt.atomic_max", "dt.atomic_min", "dt.atomic_or",
         "dt.custom_op", "dt.elementwise", "dt.grid", "dt.kernel", "dt.raw_kernel"], _KERNEL),
    **dict.fromkeys(
        ["dt.cond", "dt.constant", "dt.fori_loop", "dt.jit", "dt.scan", "dt.vectorize", "dt.vmap",
         "dt.while_loop"], _TRANSFORM),
    **dict.fromkeys(
        ["dt.from_blob", "dt.from_dlpack", "dt.is_contiguous", "dt.pin_memory",
         "x.data", "x.data_ptr", "x.is_contiguous", "x.is_pinned", "x.resize_", "x.set_",
         "x.storage", "x.storage_offset", "x.stride", "x.tobytes", "x.to_device",
         "x.to_dense", "x.imag"],
        _MEMORY),
    **dict.fromkeys(
        ["F.gumbel_softmax", "dt.multinomial", "x.integers_", "x.normal_", "x.uniform_"], _RANDOM),
    **dict.fromkeys(
        ["dt.load", "dt.load_function", "dt.load_metadata", "dt.save", "dt.save_function"], _FILES),
    **dict.fromkeys(
        ["dt.default_device", "dt.get_autocast_dtype", "dt.get_default_dtype",
         "dt.get_num_threads", "dt.get_printoptions", "dt.is_autocast_enabled",
         "dt.set_default_device", "dt.set_default_dtype", "dt.set_num_threads",
         "dt.set_printoptions", "dt.are_deterministic_algorithms_enabled",
         "dt.use_deterministic_algorithms"], _SETTING),
    **dict.fromkeys(
        ["dt.__array_namespace_info__", "dt.can_cast", "dt.device", "dt.devices",
         "dt.element_size", "dt.finfo", "dt.iinfo", "dt.storage_index", "dt.isdtype",
         "dt.result_type", "dt.contiguous_strides", "x.device", "x.dtype", "x.itemsize", "x.item",
         "x.layout", "x.nbytes"], _SPEC),
}  # fmt: skip
