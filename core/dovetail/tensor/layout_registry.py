"""Layout plugins: found, checked and loaded like backends, when a name of theirs is first used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pluggy

from ..plugins.plugin_registry import PluginRegistry
from ..plugins.record import Record, State
from .other_layouts import INTERFACE, LayoutInfo

GROUPS = "dovetail.layouts.v"
hookspec = pluggy.HookspecMarker("dovetail")


class Hooks:
    """What a layout plugin implements, as a module-level function marked with `hookimpl`."""

    @staticmethod
    @hookspec(firstresult=True)
    def dovetail_layout_info() -> LayoutInfo:  # type: ignore[empty-body]  # a spec
        """The layout, and what it adds to the public namespace."""

    @staticmethod
    @hookspec(firstresult=True)
    def dovetail_conformance() -> Mapping[str, str]:  # type: ignore[empty-body]  # a hook
        """Declared gaps: {pattern of the layout kit's case names: reason}. Optional."""


class LayoutRegistry(PluginRegistry):
    """All layout plugins of one process. A loaded one is in state `open`; it has no devices."""

    what = "layout"
    groups, interface, hooks = GROUPS, INTERFACE, Hooks
    info_hook = "dovetail_layout_info"

    def accept(self, record: Record, info: object) -> None:
        """See `PluginRegistry.accept`."""
        if not isinstance(info, LayoutInfo) or info.layout.name != record.type:
            record.fail(
                State.IMPORT_FAILED,
                f"dovetail_layout_info returned {info!r}, not a LayoutInfo of {record.type}",
            )
        elif self.check_description(record, info.layout.name, info.minimum_interface):
            self._infos[record.type] = info
            record.state = State.OPEN

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._infos: dict[str, LayoutInfo] = {}

    def infos(self) -> list[LayoutInfo]:
        """Every layout that can be used here."""
        for name in self.records():
            self.probe(name)
        return list(self._infos.values())

    def find(self, where: str, name: str) -> Any:  # whatever layouts add
        """What some layout adds to "functions" or "methods" under a name.

        Raises: AttributeError where none does; the plugin's own error if one could not be loaded.
        """
        for info in self.infos():
            found = getattr(info, where).get(name)
            if found is not None:
                return found
        for record in self.records().values():
            if record.state is not State.OPEN:
                raise AttributeError(f"{name!r} is not known") from record.error()
        raise AttributeError(name)


registry = LayoutRegistry()
