# Written by tools/faces.py for type checkers:
# ruff: noqa
# the names of `torch.backends`.
# fmt: off
# isort: off

from dovetail.torch.adoption import Tensor
import builtins
from dovetail.tensor.tensor import Tensor as AnyTensor
from typing import Any

cuda: Any
cudnn: Any
mkl: Any
mkldnn: Any
mps: Any
openmp: Any
opt_einsum: Any
def __getattr__(name: str) -> Any: ...
