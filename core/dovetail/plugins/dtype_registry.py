"""The registry of dtype plugins, which are loaded when their name is first used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pluggy

from .. import dtypes as D
from ..dtypes import DType
from ..errors import DTypeError
from ..ir.formats import DTYPE_INFOS, INTERFACE, DTypeInfo, install
from ..layout import Layout
from .entry import PluginEntry
from .plugin_registry import PluginRegistry
from .plugin_state import PluginRecord, PluginState

GROUP_PREFIX = "dovetail.dtypes.v"
hookspec = pluggy.HookspecMarker("dovetail")


@dataclass(frozen=True)
class BlockInfo:
    """A layout of quantised blocks: the numbers of a block share a scale.

    A block with NaN or infinity is all NaN. The elements read as float32.

    - `name`: the name of the format, for `x.astype(name)`.
    - `layout`: the layout of its tensors.
    - `block`: the numbers per block along the last axis.
    - `levels`: the possible values of a number, divided by its block's scale, ascending.
    - `quantise`: implements `x.astype(name)` for a strided tensor: each number goes to the nearest
      level (ties to the even one), the number of largest magnitude in a block to the last level.
    - `minimum_interface`: the least interface (major, minor) that it needs.
    """

    name: str
    layout: Layout
    block: int
    levels: tuple[float, ...]
    quantise: Callable[..., Any]
    minimum_interface: tuple[int, int] = INTERFACE


class DTypeHookSpecs:
    """The hooks of a dtype plugin: module-level functions marked with `hookimpl`."""

    @staticmethod
    @hookspec(firstresult=True)
    def dovetail_dtype_info() -> DTypeInfo | BlockInfo:  # type: ignore[empty-body]  # a spec
        """Return the complete description of the dtype."""

    @staticmethod
    @hookspec(firstresult=True)
    def dovetail_conformance() -> Mapping[str, str]:  # type: ignore[empty-body]  # a hook
        """Return declared gaps: {pattern of the dtype kit's case names: reason}. Optional."""


class DTypeRegistry(PluginRegistry):
    """The dtype plugins of one process. A usable one is in state `open`."""

    plugin_kind = "dtype"
    groups, interface, hooks = GROUP_PREFIX, INTERFACE, DTypeHookSpecs
    info_hook = "dovetail_dtype_info"

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._dtypes: dict[str, DType] = {}
        self._blocks: dict[str, BlockInfo] = {}

    def _create_record(self, name: str, entries: list[PluginEntry]) -> PluginRecord:
        """Create the record of a name, failed if the name is a built-in dtype's."""
        record = super()._create_record(name, entries)
        built_in = D.BY_NAME.get(name)
        if built_in in D.BUILT_IN:
            whose = f"tell the authors of {record.distribution}"
            record.fail(PluginState.CONFLICT, f"{name} is a built-in dtype of dovetail", whose)
        return record

    def accept_info(self, record: PluginRecord, info: object) -> None:
        """Install a plugin's dtype or blocks and mark its record open, or mark it as failed."""
        authors = f"tell the authors of {record.distribution}"
        if not isinstance(info, DTypeInfo | BlockInfo):
            reason = f"dovetail_dtype_info must return a DTypeInfo or BlockInfo, got {info!r}"
            record.fail(PluginState.IMPORT_FAILED, reason, authors)
        elif not self.check_description(record, info.name, info.minimum_interface):
            return
        elif isinstance(info, BlockInfo):
            if info.layout.name != info.name or info.block < 2 or len({*info.levels}) < 2:
                reason = "BlockInfo: name must be layout.name, and block and levels at least 2"
                record.fail(PluginState.IMPORT_FAILED, f"{reason}, got {info!r}", authors)
                return
            self._blocks[record.type] = info
            record.state = PluginState.OPEN
        else:
            try:
                self._dtypes[record.type] = install(info)
            except DTypeError as error:
                record.fail(PluginState.IMPORT_FAILED, str(error), authors, error)
            else:
                record.state = PluginState.OPEN

    def find_by_name(self, name: str) -> DType | None:
        """Load a plugin; return its dtype, or None without one. Raises: DTypeError for blocks.

        Raises: PluginError if the plugin of this name is unusable.
        """
        if self.blocks(name) is not None:
            raise DTypeError(
                f"{name} is a layout of quantised blocks, not a dtype of elements; "
                f"x.astype({name!r}) quantises a float tensor, whose dtype stays float32"
            )
        return self._dtypes.get(name)

    def blocks(self, name: str) -> BlockInfo | None:
        """Load the plugin of this name; return its block layout, or None if there is none.

        Raises: PluginError if the plugin of this name is unusable.
        """
        if name not in self.records():
            return None
        record = self.probe(name)
        if record.state is not PluginState.OPEN:
            raise record.error()
        return self._blocks.get(name)

    def find_foreign_name(self, name: str) -> DType | None:
        """Load all plugins; return the dtype with this name in another library, or None."""
        for each in self.records():
            self.probe(each)
        return next((d for d in self._dtypes.values() if name in DTYPE_INFOS[d].elsewhere), None)

    def find(self, name: str, is_foreign: bool) -> DType | None:
        """Return the dtype of a name, here or in other libraries, or None; the dtypes' finder."""
        return self.find_foreign_name(name) if is_foreign else self.find_by_name(name)


registry = DTypeRegistry()
D.register_finder(registry.find)
