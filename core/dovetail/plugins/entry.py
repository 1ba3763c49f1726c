"""Entry points of installed plugins, from package metadata alone."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from ..backend.interface import INTERFACE
from ..install_source import CORE_DISTRIBUTION

if TYPE_CHECKING:
    from importlib.metadata import Distribution, EntryPoint

GROUP_PREFIX = "dovetail.backends.v"
GROUP = f"{GROUP_PREFIX}{INTERFACE[0]}"


class PluginEntry(NamedTuple):
    """One entry point: a device type (`name`), and its plugin (`value`).

    The value is "module" or "module:object".
    """

    name: str
    value: str
    group: str = GROUP
    distribution: str = CORE_DISTRIBUTION
    version: str = ""

    def load(self) -> object:
        """Import the plugin's module, and return the module or the object in it."""
        module, _, attributes = self.value.partition(":")
        plugin: object = importlib.import_module(module.strip())
        for attribute in attributes.split(".") if attributes else ():
            plugin = getattr(plugin, attribute.strip())
        return plugin


def installed(groups: str = GROUP_PREFIX) -> list[PluginEntry]:
    """Return the entry points of every installed plugin, of any interface version.

    Only metadata is read; no plugin is imported. `groups`: the prefix of the groups' names. A
    module that two distributions offer under one name is one plugin: dovetail was installed under
    another name before.
    Raises: nothing.

    >>> from dovetail import plugins
    >>> "dovetail.backends.v1" in {e.group for e in plugins.installed()}
    True
    """
    import importlib.metadata as metadata  # 16 ms, not part of `import dovetail`

    try:
        entry_points = metadata.entry_points()
        candidates = [e for group in entry_points.groups for e in entry_points.select(group=group)]
    except Exception:  # one distribution has unreadable metadata: read the others
        candidates = [e for d in metadata.distributions() for e in _read_entry_points(d)]
    entries = sorted((e for e in candidates if e.group.startswith(groups)), key=lambda e: e.group)
    plugins: dict[tuple[str, str, str], PluginEntry] = {}
    for e in entries:
        plugin = PluginEntry(e.name, e.value, e.group, *_read_name_and_version(e.dist))
        if plugin[:3] not in plugins or plugin.distribution == CORE_DISTRIBUTION:
            plugins[plugin[:3]] = plugin
    return list(plugins.values())


def _read_entry_points(distribution: Distribution) -> Sequence[EntryPoint]:
    """Return the entry points of a distribution; none if its metadata cannot be read."""
    with suppress(Exception):
        return distribution.entry_points
    return ()


def _read_name_and_version(distribution: Distribution | None) -> tuple[str, str]:
    """Return name and version of a distribution; "?" and "" if its metadata cannot be read."""
    with suppress(Exception):
        if distribution is not None:
            return str(distribution.name), str(distribution.version)
    return "?", ""
