"""Entry points: which plugins are installed, by package metadata alone."""

from __future__ import annotations

import importlib
import re
from typing import NamedTuple

from ..backend.interface import INTERFACE

GROUPS = "dovetail.backends.v"
GROUP = f"{GROUPS}{INTERFACE[0]}"


class Entry(NamedTuple):
    """One entry point: a device type (`name`), and where its plugin is (`value`).

    A plugin is "module" or "module:object".
    """

    name: str
    value: str
    group: str = GROUP
    distribution: str = "dovetail"
    version: str = ""

    def load(self) -> object:
        """The plugin, imported."""
        module, _, attributes = self.value.partition(":")
        plugin: object = importlib.import_module(module.strip())
        for attribute in attributes.split(".") if attributes else ():
            plugin = getattr(plugin, attribute.strip())
        return plugin


_OFFER = r"""(dovetail-[\w-]+)[^;]*;.*extra\s*==\s*['"](\w+)['"]"""


def installed(groups: str = GROUPS) -> list[Entry]:
    """The entry points of every installed plugin, of any interface version.

    Only metadata is read; no plugin is imported. `groups`: how the names of their groups begin.
    Raises: nothing of its own.

    >>> from dovetail import plugins
    >>> "dovetail.backends.v1" in {e.group for e in plugins.installed()}
    True
    """
    import importlib.metadata as metadata  # 16 ms, which `import dovetail` need not pay

    found = metadata.entry_points()
    versions = sorted(group for group in found.groups if group.startswith(groups))
    return [
        Entry(
            e.name, e.value, group, e.dist.name if e.dist else "?", e.dist.version if e.dist else ""
        )
        for group in versions
        for e in found.select(group=group)
    ]


def offers() -> dict[str, str]:
    """The backends that dovetail's own package metadata declares: device type -> distribution."""
    import importlib.metadata as metadata  # as above

    try:
        requires = metadata.requires("dovetail") or []
    except metadata.PackageNotFoundError:
        return {}
    found = (re.match(_OFFER, line) for line in requires)
    return {match[2]: match[1] for match in found if match}
