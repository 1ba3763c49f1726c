# Written by tools/faces.py for type checkers:
# ruff: noqa
# the names of `torch.optim.swa_utils`.
# fmt: off
# isort: off

from dovetail.torch.adoption import Tensor
from collections.abc import Iterable
from dovetail.extend import DeviceLike
from dovetail.nn.modules.module import Module
from dovetail.optim.swa_utils import Mean, MultiMean
from dovetail.tensor.tensor import Tensor as AnyTensor
from typing import Any

from dovetail.optim.swa_utils import AveragedModel as AveragedModel
from dovetail.optim.swa_utils import SWALR as SWALR
def get_ema_avg_fn(decay: float = 0.999) -> Mean:
    """Return the function of an exponential moving average, for `avg_fn` of
    `AveragedModel`."""
def get_ema_multi_avg_fn(decay: float = 0.999) -> MultiMean:
    """Return the function of exponential moving averages, for `multi_avg_fn` of
    `AveragedModel`."""
def get_swa_avg_fn() -> Mean:
    """Return the function of a mean with equal weights, for `avg_fn` of `AveragedModel`."""
def get_swa_multi_avg_fn() -> MultiMean:
    """Return the function of means with equal weights, for `multi_avg_fn` of
    `AveragedModel`."""
def update_bn(loader: Iterable[Any], model: Module, device: DeviceLike = None) -> None:
    """Compute the running statistics of batch norm layers anew, as means over all batches."""
def __getattr__(name: str) -> Any: ...
