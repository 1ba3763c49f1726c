"""Reverse-mode gradients. Most used: `x.backward()`, `dt.grad`, `dt.no_grad`."""

from typing import TYPE_CHECKING

from ..lazy_import import late
from ..public_names import publish_all
from .engine import backward, detach, grad
from .tape import (
    HookHandle,
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
    set_gradient,
)

if TYPE_CHECKING:
    from ..func.derivatives import value_and_grad
    from ..func.point_derivatives import hessian, hvp, jacobian
    from .anomaly import detect_anomaly
    from .check import gradcheck, gradgradcheck
    from .function import Context, Function, checkpoint
    from .saved_hooks import saved_tensors_hooks
    from .transforms import jvp, linearize, vjp
else:
    __getattr__ = late(
        __name__,
        {
            **dict.fromkeys(("gradcheck", "gradgradcheck"), "check"),
            **dict.fromkeys(("Context", "Function", "checkpoint"), "function"),
            **dict.fromkeys(("jvp", "linearize", "vjp"), "transforms"),
            **dict.fromkeys(("hessian", "hvp", "jacobian"), ".func.point_derivatives"),
            "detect_anomaly": "anomaly",
            "saved_tensors_hooks": "saved_hooks",
            "value_and_grad": ".func.derivatives",
        },
    )

__all__ = [
    "Context",
    "Function",
    "HookHandle",
    "backward",
    "checkpoint",
    "detach",
    "detect_anomaly",
    "enable_grad",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "hessian",
    "hvp",
    "inference_mode",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "jacobian",
    "jvp",
    "linearize",
    "no_grad",
    "saved_tensors_hooks",
    "set_grad_enabled",
    "set_gradient",
    "value_and_grad",
    "vjp",
]


def __dir__() -> list[str]:
    return __all__


publish_all(globals())
