"""Metrics of predictions, with scikit-learn's names, arguments and values.

Results are tensors on the device of the arguments. They are deferred, and can be captured, unless
a function says that it is evaluated.
"""

from typing import TYPE_CHECKING

from dovetail.extend import publish_all

from ..nn.call_errors import explain_all
from ..nn.missing_names import make_module_getattr
from . import classification, ranking, regression
from .classification import *
from .ranking import *
from .regression import *

__all__: list[str] = []
__all__ += classification.__all__
__all__ += ranking.__all__
__all__ += regression.__all__

explain_all(globals(), __all__)
publish_all(globals())


def __dir__() -> list[str]:
    return __all__


if not TYPE_CHECKING:
    __getattr__ = make_module_getattr("metrics")
