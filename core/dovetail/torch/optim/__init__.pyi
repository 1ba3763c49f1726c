# Written by tools/faces.py for type checkers:
# ruff: noqa
# the names of `torch.optim`.
# fmt: off
# isort: off

from dovetail.torch.adoption import Tensor
from dovetail.tensor.tensor import Tensor as AnyTensor
from typing import Any

from . import lr_scheduler as lr_scheduler
from . import swa_utils as swa_utils
from dovetail.optim import ASGD as ASGD
from dovetail.optim import Adadelta as Adadelta
from dovetail.optim import Adafactor as Adafactor
from dovetail.optim import Adagrad as Adagrad
from dovetail.optim import Adam as Adam
from dovetail.optim import AdamW as AdamW
from dovetail.optim import Adamax as Adamax
from dovetail.optim import LBFGS as LBFGS
from dovetail.optim import Lion as Lion
from dovetail.optim import Muon as Muon
from dovetail.optim import NAdam as NAdam
from dovetail.optim import Optimizer as Optimizer
from dovetail.optim import RAdam as RAdam
from dovetail.optim import RMSprop as RMSprop
from dovetail.optim import Rprop as Rprop
from dovetail.optim import SGD as SGD
from dovetail.optim import SparseAdam as SparseAdam
def __getattr__(name: str) -> Any: ...
