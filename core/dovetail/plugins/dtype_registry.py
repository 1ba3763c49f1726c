"""Dtype plugins: found, checked and loaded like backends, when one is first named."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pluggy

from .. import dtypes as D
from ..dtypes import DType
from ..errors import DTypeError
from ..layout import Layout
from ..loops.formats import INFOS, INTERFACE, DTypeInfo, install
from .entry import Entry
from .plugin_registry import PluginRegistry
from .record import Record, State

GROUPS = "dovetail.dtypes.v"
hookspec = pluggy.HookspecMarker("dovetail")


@dataclass(frozen=True)
class BlockInfo:
    """Numbers without bytes of their own: so many share a scale. A layout, quantised to by name.

    `block`: how many along the last axis. `levels`: what a number may be, times its block's scale,
    ascending. `quantise`: a strided tensor in the layout, each number at the nearest level (ties to
    the even one), where the largest in size of a block is at the last: `x.astype(name)`. A block
    that holds NaN or infinity is all NaN. The elements read as float32.
    """

    name: str
    layout: Layout
    block: int
    levels: tuple[float, ...]
    quantise: Callable[..., Any]
    minimum_interface: tuple[int, int] = INTERFACE


class Hooks:
    """What a dtype plugin implements, as a module-level function marked with `hookimpl`."""

    @staticmethod
    @hookspec(firstresult=True)
    def dovetail_dtype_info() -> DTypeInfo | BlockInfo:  # type: ignore[empty-body]  # a spec
        """The description of the dtype: all that there is to it."""

    @staticmethod
    @hookspec(firstresult=True)
    def dovetail_conformance() -> Mapping[str, str]:  # type: ignore[empty-body]  # a hook
        """Declared gaps: {pattern of the dtype kit's case names: reason}. Optional."""


class DTypeRegistry(PluginRegistry):
    """All dtype plugins of one process. One that can be used is in state `open`."""

    what = "dtype"
    groups, interface, hooks = GROUPS, INTERFACE, Hooks
    info_hook = "dovetail_dtype_info"

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._made: dict[str, DType] = {}
        self._blocks: dict[str, BlockInfo] = {}

    def _record(self, name: str, entries: list[Entry]) -> Record:
        record = super()._record(name, entries)
        own = D.BY_NAME.get(name)
        if own in D.BUILT_IN:
            whose = f"tell the authors of {record.distribution}"
            record.fail(State.CONFLICT, f"{name} is a dtype of dovetail's own", whose)
        return record

    def accept(self, record: Record, info: object) -> None:
        """See `PluginRegistry.accept`."""
        authors = f"tell the authors of {record.distribution}"
        if not isinstance(info, DTypeInfo | BlockInfo):
            reason = f"dovetail_dtype_info returned {info!r}, not a DTypeInfo or BlockInfo"
            record.fail(State.IMPORT_FAILED, reason, authors)
        elif not self.check_description(record, info.name, info.minimum_interface):
            return
        elif isinstance(info, BlockInfo):
            if info.layout.name != info.name or info.block < 2 or len({*info.levels}) < 2:
                reason = "a layout has the name of its blocks, and these several numbers and levels"
                record.fail(State.IMPORT_FAILED, f"{reason}: {info!r}", authors)
                return
            self._blocks[record.type] = info
            record.state = State.OPEN
        else:
            try:
                self._made[record.type] = install(info)
            except DTypeError as error:
                record.fail(State.IMPORT_FAILED, str(error), authors, error)
            else:
                record.state = State.OPEN

    def named(self, name: str) -> DType | None:
        """The dtype of this name; None where no plugin has it.

        Raises: PluginError where one has it and cannot be used; DTypeError for blocks.
        """
        if self.blocks(name) is not None:
            raise DTypeError(
                f"{name} is no dtype of elements but a layout of blocks: x.astype({name!r}) "
                "quantises a float tensor, whose dtype stays float32"
            )
        return self._made.get(name)

    def blocks(self, name: str) -> BlockInfo | None:
        """The blocks of this name; None where no plugin has them.

        Raises: PluginError where one has the name and cannot be used.
        """
        if name not in self.records():
            return None
        record = self.probe(name)
        if record.state is not State.OPEN:
            raise record.error()
        return self._blocks.get(name)

    def known_elsewhere(self, name: str) -> DType | None:
        """The dtype that other libraries call by this name; plugins that are broken are passed."""
        for each in self.records():
            self.probe(each)
        return next((d for d in self._made.values() if name in INFOS[d].elsewhere), None)

    def find(self, name: str, elsewhere: bool) -> DType | None:
        """What `dtypes.find_plugin` asks."""
        return self.known_elsewhere(name) if elsewhere else self.named(name)


registry = DTypeRegistry()
D.ask_plugins(registry.find)
