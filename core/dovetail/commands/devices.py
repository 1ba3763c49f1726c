"""`dovetail devices`: list the usable devices, and say why others are unusable.

The dtypes of plugins are listed after the devices.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ..command_line import CommandParser
from ..memory.units import format_bytes
from ..plugins.dtype_registry import registry as dtypes
from ..plugins.plugin_state import PluginRecord, PluginState, device_details
from ..plugins.registry import records


def main(arguments: Sequence[str]) -> int:
    """Print the devices, reasons for missing ones, and dtypes; return 1 if no device is usable."""
    parser().parse_args(arguments)
    plugin_records = records()
    console = Console(soft_wrap=True)
    console.print(table(plugin_records))
    for record in plugin_records:
        if not record.devices:
            console.print(f"{record.type}: {record.state.value}: {record.reason}", markup=False)
            console.print(f"  {record.hint}", markup=False)
    for record in [dtypes.probe(name) for name in dtypes.records()]:
        console.print(f"dtype {_package_text(record)}: {record.state.value}", markup=False)
        if record.state is not PluginState.OPEN:
            console.print(f"  {record.reason}\n  {record.hint}", markup=False)
    return (
        0
        if any(r.state in (PluginState.AVAILABLE, PluginState.OPEN) for r in plugin_records)
        else 1
    )


def parser() -> CommandParser:
    """Build the argument parser of this command, which has no options."""
    return CommandParser(prog="dovetail devices", description=__doc__)


def _package_text(record: PluginRecord) -> str:
    """Return type, distribution and version of a plugin, as in "cpu of dovetail-cpu 1.0"."""
    return f"{record.type} of {record.distribution} {record.version}".rstrip()


def table(plugin_records: Sequence[PluginRecord]) -> Table:
    """Return a table with a row for each usable device."""
    columns = Table("device", "name", "memory", "plugin", "details")
    for record in plugin_records:
        for d in record.devices:
            name = d.type if d.index == 0 else f"{d.type}:{d.index}"
            memory = format_bytes(d.total_memory) if d.total_memory else ""
            details = ", ".join(f"{k} {v}" for k, v in device_details(d).items())
            plugin = f"{record.distribution} {record.version}".rstrip()
            columns.add_row(*map(escape, (name, d.name, memory, plugin, details)))
    return columns
