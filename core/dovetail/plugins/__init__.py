"""Installed backends: discovered by entry points, loaded at first use, opened once.

Ops do not use this package: they use the open device directly. `dt.plugins` has the functions of
`registry`.
"""

from typing import TYPE_CHECKING

from ..lazy_import import late

if TYPE_CHECKING:
    from .registry import devices, installed, open_device, records
else:
    __getattr__ = late(
        __name__, dict.fromkeys(("devices", "installed", "open_device", "records"), "registry")
    )

__all__ = ["devices", "installed", "open_device", "records"]


def __dir__() -> list[str]:
    return __all__
