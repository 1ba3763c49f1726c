"""Validation of the arguments of `DataPtr`."""

from __future__ import annotations

from ..argument_checks import LARGEST, function, integer, refused
from ..device_class import Device


def check(offset: object, nbytes: object, device: object, deleter: object) -> None:
    """Raise ArgumentTypeError or ArgumentError for an argument that `DataPtr` does not take."""
    integer("DataPtr", offset, "offset", 0, LARGEST)
    integer("DataPtr", nbytes, "nbytes", 0, LARGEST)
    if not isinstance(device, Device):
        raise refused("DataPtr", "device", 'a device such as dt.device("cpu")', device)
    if deleter is not None:
        function("DataPtr", deleter, "deleter")
