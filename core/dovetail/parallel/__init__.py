"""Programs of several workers: a group of processes, messages, collective operations."""

from typing import TYPE_CHECKING

from dovetail.extend import publish_all

from ..nn.call_errors import explain_all
from ..nn.missing_names import make_module_getattr
from . import (
    dealing,
    gradients,
    group,
    launcher,
    membership,
    sharded,
    sharded_optimizer,
    worker_errors,
)
from .dealing import *
from .gradients import *
from .group import *
from .launcher import *
from .membership import *
from .sharded import *
from .sharded_optimizer import *
from .worker_errors import *

__all__: list[str] = []
__all__ += dealing.__all__
__all__ += gradients.__all__
__all__ += group.__all__
__all__ += launcher.__all__
__all__ += membership.__all__
__all__ += sharded.__all__
__all__ += sharded_optimizer.__all__
__all__ += worker_errors.__all__

explain_all(globals(), membership.__all__)  # `run` calls the user's code
publish_all(globals())


def __dir__() -> list[str]:
    return __all__


if not TYPE_CHECKING:
    __getattr__ = make_module_getattr("parallel")
