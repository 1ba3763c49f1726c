# Written by tools/faces.py for type checkers:
# ruff: noqa
# the names of `torch.amp`.
# fmt: off
# isort: off

from dovetail.torch.adoption import Tensor
import dovetail as dt
from collections.abc import Callable
from dovetail.amp import P, R
from dovetail.tensor.tensor import Tensor as AnyTensor
from typing import Any

from dovetail.amp import GradScaler as GradScaler
from dovetail.amp import autocast as autocast
def custom_bwd(bwd: Callable[P, R] | None = None, *, device_type: str | None = None) -> Any:
    """Decorate the `backward` of a `dt.autograd.Function`: it runs under forward's
    autocast."""
def custom_fwd(
    fwd: Callable[P, R] | None = None,
    *,
    device_type: str | None = None,
    cast_inputs: dt.DType | None = None,
) -> Any:
    """Decorate the `forward` of a `dt.autograd.Function`, whose `backward` has
    `custom_bwd`."""
def __getattr__(name: str) -> Any: ...
