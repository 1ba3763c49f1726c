"""The registry of layout plugins, which are loaded at the first use of one of their names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pluggy

from ..plugins.plugin_registry import PluginRegistry
from ..plugins.plugin_state import PluginRecord, PluginState
from .other_layouts import INTERFACE, LayoutInfo

ENTRY_POINT_PREFIX = "dovetail.layouts.v"
hookspec = pluggy.HookspecMarker("dovetail")


class LayoutHooks:
    """The hooks of a layout plugin: module-level functions marked with `hookimpl`."""

    @staticmethod
    @hookspec(firstresult=True)
    def dovetail_layout_info() -> LayoutInfo:  # type: ignore[empty-body]  # a spec
        """Return the LayoutInfo: the layout, and names that it adds to `dt` and Tensor."""

    @staticmethod
    @hookspec(firstresult=True)
    def dovetail_conformance() -> Mapping[str, str]:  # type: ignore[empty-body]  # a hook
        """Return declared gaps: {pattern of the layout kit's case names: reason}. Optional."""


class LayoutRegistry(PluginRegistry):
    """The layout plugins of one process. A loaded one is in state `open`; it has no devices."""

    plugin_kind = "layout"
    groups, interface, hooks = ENTRY_POINT_PREFIX, INTERFACE, LayoutHooks
    info_hook = "dovetail_layout_info"

    def accept_info(self, record: PluginRecord, info: object) -> None:
        """Store a plugin's LayoutInfo, or mark its record as failed."""
        if not isinstance(info, LayoutInfo) or info.layout.name != record.type:
            record.fail(
                PluginState.IMPORT_FAILED,
                f"dovetail_layout_info returned {info!r}, not a LayoutInfo of {record.type}",
            )
        elif self.check_description(record, info.layout.name, info.minimum_interface):
            self._infos[record.type] = info
            record.state = PluginState.OPEN

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._infos: dict[str, LayoutInfo] = {}

    def infos(self) -> list[LayoutInfo]:
        """Load all layout plugins, and return the descriptions of those that loaded."""
        for name in self.records():
            self.probe(name)
        return list(self._infos.values())

    def find(self, kind: str, name: str) -> Any:  # of any type
        """Return the attribute `name` of a layout's "functions" or "methods"; load plugins first.

        Raises: AttributeError if none does, caused by the plugin's own error if one failed to load.
        """
        for info in self.infos():
            attribute = getattr(info, kind).get(name)
            if attribute is not None:
                return attribute
        for record in self.records().values():
            if record.state is not PluginState.OPEN:
                raise AttributeError(f"{name!r} is not known") from record.error()
        raise AttributeError(name)


registry = LayoutRegistry()
