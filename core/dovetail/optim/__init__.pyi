# Written by tools/faces.py from the `__all__` of the modules.

from . import lr_scheduler as lr_scheduler
from . import swa_utils as swa_utils
from .adafactor import Adafactor as Adafactor
from .adagrad import Adadelta as Adadelta
from .adagrad import Adagrad as Adagrad
from .adagrad import RMSprop as RMSprop
from .adam import Adam as Adam
from .adam import AdamW as AdamW
from .adam import Adamax as Adamax
from .adam import NAdam as NAdam
from .adam import RAdam as RAdam
from .adam import SparseAdam as SparseAdam
from .averaged import ASGD as ASGD
from .lbfgs import LBFGS as LBFGS
from .lion import Lion as Lion
from .muon import Muon as Muon
from .optimizer import Optimizer as Optimizer
from .rprop import Rprop as Rprop
from .sgd import SGD as SGD
