"""`np.polynomial`: NumPy's own package; its results are NumPy's arrays on the host."""

from __future__ import annotations

from numpy.polynomial import *  # noqa: F403
from numpy.polynomial import __all__ as __all__
from numpy.polynomial import chebyshev as chebyshev
from numpy.polynomial import hermite as hermite
from numpy.polynomial import hermite_e as hermite_e
from numpy.polynomial import laguerre as laguerre
from numpy.polynomial import legendre as legendre
from numpy.polynomial import polynomial as polynomial
