"""The notebook page of devices: their names, plugins, details and memory."""

from __future__ import annotations

from collections.abc import Sequence

from ..device_class import Device, default_device
from ..memory.units import format_bytes
from ..plugins.plugin_state import PluginRecord, device_details
from ..plugins.registry import records
from . import svg_boxes

__all__: list[str] = []

COLUMN_NAMES = ("device", "name", "plugin", "details", "memory", "in use", "units")


def html(devices: Sequence[Device]) -> str:
    """Render an HTML table of devices, the default one marked; no device is opened."""
    plugin_records = records()
    rows = [_build_row(d, plugin_records) for d in devices]
    if not rows:
        return svg_boxes.frame(svg_boxes.head("devices", "none can be used: see `dovetail doctor`"))
    return svg_boxes.frame(svg_boxes.table(COLUMN_NAMES, rows, 4))


def _build_row(d: Device, plugin_records: Sequence[PluginRecord]) -> tuple[str, ...]:
    """Return the table cells of a device; for one without a plugin record, the reason."""
    mark = f"{d} (default)" if d is default_device() else str(d)
    for record in plugin_records:
        for info in record.devices:
            if (info.type, info.index) == (d.type, d.index):
                memory = format_bytes(info.total_memory) if info.total_memory else ""
                used = (
                    format_bytes(d.opened.allocator.stats().live_bytes) if d.opened else "not open"
                )
                details = ", ".join(f"{k} {v}" for k, v in device_details(info).items())
                plugin = f"{record.distribution} {record.version}".strip()
                units = str(info.capabilities.concurrency)
                return mark, info.name, plugin, svg_boxes.shorten(details), memory, used, units
    reason = next(
        (f"{r.state.value}: {r.reason}" for r in plugin_records if r.type == d.type), "no plugin"
    )
    return mark, reason, "", "", "", "", ""
