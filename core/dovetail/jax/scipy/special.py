"""The functions of `jax.scipy.special`."""

from __future__ import annotations

from ..lookup import make_module_dir, make_module_getattr, table

__all__: list[str] = []

_NAMES = table("gamma log_softmax softmax logsumexp logit polygamma xlogy zeta") | {
    name: f"special.{ours}"
    for name, ours in table("digamma erf erfc erfinv expit gammaln i0 i1 ndtr ndtri").items()
}
__getattr__ = make_module_getattr(globals(), _NAMES)
__dir__ = make_module_dir(globals(), _NAMES)
