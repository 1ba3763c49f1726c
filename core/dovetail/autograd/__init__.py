"""Reverse-mode gradients. Most used: `x.backward()`, `dt.grad`, `dt.no_grad`."""

from . import captured as _captured  # noqa: F401 - captured functions find it in `recording`
from .check import gradcheck, gradgradcheck
from .engine import backward, detach, grad
from .function import Context, Function, checkpoint
from .tape import HookHandle, enable_grad, is_grad_enabled, no_grad, set_grad_enabled, set_gradient
from .transforms import jvp, vjp

__all__ = [
    "Context", "Function", "HookHandle", "backward", "checkpoint", "detach", "enable_grad", "grad",
    "gradcheck", "gradgradcheck", "is_grad_enabled", "jvp", "no_grad", "set_grad_enabled",
    "set_gradient", "vjp",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__
