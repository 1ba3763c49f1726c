"""Reverse-mode gradients. Most used: `x.backward()`, `dt.grad`, `dt.no_grad`."""

from typing import TYPE_CHECKING

from ..late import late
from . import captured as _captured  # noqa: F401 - captured functions find it in `recording`
from .engine import backward, detach, grad
from .tape import HookHandle, enable_grad, is_grad_enabled, no_grad, set_grad_enabled, set_gradient

if TYPE_CHECKING:
    from .check import gradcheck, gradgradcheck
    from .function import Context, Function, checkpoint
    from .transforms import jvp, vjp
else:
    __getattr__ = late(
        __name__,
        {
            **dict.fromkeys(("gradcheck", "gradgradcheck"), "check"),
            **dict.fromkeys(("Context", "Function", "checkpoint"), "function"),
            **dict.fromkeys(("jvp", "vjp"), "transforms"),
        },
    )

__all__ = [
    "Context", "Function", "HookHandle", "backward", "checkpoint", "detach", "enable_grad", "grad",
    "gradcheck", "gradgradcheck", "is_grad_enabled", "jvp", "no_grad", "set_grad_enabled",
    "set_gradient", "vjp",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__
