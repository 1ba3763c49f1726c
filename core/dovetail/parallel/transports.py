"""The installed transports, by name."""

from __future__ import annotations

from dovetail.extend import PluginEntry, TransportRegistry

GROUP = "dovetail.transports.v1"
BUILT_IN = tuple(
    PluginEntry(name, f"{__package__}.{module}", GROUP)
    for name, module in (("sockets", "sockets"), ("mpi", "mpi"))
)

registry = TransportRegistry(built_in=BUILT_IN)
