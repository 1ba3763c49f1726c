"""`np.emath`: functions whose results are complex outside of the real domain, on the host."""

from __future__ import annotations

import numpy as _host

from ..calls import wrap_host_function

__all__ = [*_host.emath.__all__]
globals().update({name: wrap_host_function(getattr(_host.emath, name)) for name in __all__})
