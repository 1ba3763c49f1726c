# Written by tools/faces.py for type checkers:
# ruff: noqa
# the names of `torch.distributions.constraints`.
# fmt: off
# isort: off

from dovetail.torch.adoption import Tensor
import builtins
from dovetail.tensor.tensor import Tensor as AnyTensor
from typing import Any

from dovetail.distributions.constraints import Constraint as Constraint
boolean: Any
from dovetail.distributions.constraints import cat as cat
corr_cholesky: Any
dependent: Any
from dovetail.distributions.constraints import dependent_property as dependent_property
from dovetail.distributions.constraints import greater_than as greater_than
from dovetail.distributions.constraints import greater_than_eq as greater_than_eq
from dovetail.distributions.constraints import half_open_interval as half_open_interval
from dovetail.distributions.constraints import independent as independent
from dovetail.distributions.constraints import integer_interval as integer_interval
from dovetail.distributions.constraints import interval as interval
def is_dependent(constraint: object) -> bool:
    """Return True if a constraint cannot be checked by itself."""
from dovetail.distributions.constraints import less_than as less_than
lower_cholesky: Any
lower_triangular: Any
from dovetail.distributions.constraints import multinomial as multinomial
nonnegative: Any
nonnegative_integer: Any
one_hot: Any
positive: Any
positive_definite: Any
positive_integer: Any
positive_semidefinite: Any
real: Any
real_vector: Any
simplex: Any
square: Any
from dovetail.distributions.constraints import stack as stack
symmetric: Any
unit_interval: Any
def __getattr__(name: str) -> Any: ...
