"""The base of plugin registries: discovery, import and checks of hooks.

Discovery reads package metadata only. A plugin is imported and checked when its name is first
used, each in a try of its own, so a broken plugin affects only users of its name.
"""

from __future__ import annotations

import os
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import pluggy

from ..errors import DovetailError, PluginError
from ..install_source import CORE_DISTRIBUTION, reinstall_command
from ..locks import Lock
from ..memory.tracing.stacktrace import skip_package
from . import validate_hooks
from .entry import PluginEntry, installed
from .limited import call_catching, call_with_time_limit
from .plugin_state import PluginRecord, PluginState, error_line

__all__ = ["PluginRegistry", "nearest_names"]


class PluginRegistry(ABC):
    """A base of registries of plugins: discovery, import and checks of those of one kind.

    Safe to use from several threads. Plugins are discovered once, when first asked for. `find`:
    the installed entry points; `built_in`: plugins that come with the core.
    """

    plugin_kind: str  # the kind of plugin in errors: "dtype"
    groups: str  # prefix of entry-point groups, without the interface version
    interface: tuple[int, int]
    hooks: type  # pluggy's specifications
    info_hook: str  # returns the plugin's description
    required: tuple[str, ...] = ()  # other hooks that each plugin implements
    has_time_limit = False  # plugins are imported in a thread of their own, within a time limit

    def __init__(
        self,
        find: Callable[[], Iterable[PluginEntry]] | None = None,
        environ: Mapping[str, str] = os.environ,
        built_in: Iterable[PluginEntry] = (),
    ) -> None:
        self._find = partial(installed, self.groups) if find is None else find
        self._environ, self._built_in = environ, tuple(built_in)
        self._lock = Lock(waited=False)
        self._records: dict[str, PluginRecord] | None = None

    @abstractmethod
    def accept_info(self, record: PluginRecord, info: Any) -> None:
        """Store the description of a plugin, or mark its record as failed.

        Raises: any error; the caller records it.
        """

    # --- discovery
    def records(self) -> dict[str, PluginRecord]:
        """Return {name: record} of every known plugin; discover them on first use."""
        with self._lock:
            if self._records is None:
                self._records = self._discover()
            return self._records

    def _discover(self) -> dict[str, PluginRecord]:
        """Read the entry points; return a record of each name, without imports."""
        by_type: dict[str, list[PluginEntry]] = {}
        for entry in (*self._built_in, *self._find()):
            by_type.setdefault(entry.name, []).append(entry)
        return {
            name: self._create_record(name, entries) for name, entries in sorted(by_type.items())
        }

    def _create_record(self, name: str, entries: list[PluginEntry]) -> PluginRecord:
        """Create the record of a name, failed for another interface or several plugins."""
        ours = [e for e in entries if e.group == f"{self.groups}{self.interface[0]}"]
        record = PluginRecord(name, tuple(ours or entries), plugin_kind=self.plugin_kind)
        record.distribution = " and ".join(e.distribution for e in record.entries)
        record.version = " and ".join(e.version for e in record.entries if e.version)
        if not ours:
            theirs = ", ".join(sorted(e.group.removeprefix(self.groups) for e in entries))
            record.fail(
                PluginState.API_MISMATCH,
                f"it uses interface {theirs}, but this dovetail uses interface {self.interface[0]}",
                ", and ".join(
                    map(reinstall_command, [CORE_DISTRIBUTION, *(e.distribution for e in entries)])
                ),
            )
        elif len(ours) > 1:
            record.fail(
                PluginState.CONFLICT,
                f"{record.distribution} both provide it",
                f"pip uninstall {ours[-1].distribution} (or the other)",
            )
        return record

    # --- one plugin: import, check
    def probe(self, type: str) -> PluginRecord:
        """Return the record of a name; on first use import and check the plugin.

        Raises: a DovetailError if no plugin offers this name.
        """
        record = self.records().get(type)
        if record is None:
            raise self.unknown_name_error(type)
        with record.lock:
            if record.state is PluginState.DISCOVERED:
                started = time.perf_counter()
                self._import_plugin(record)
                record.milliseconds = (time.perf_counter() - started) * 1e3
            return record

    def _import_plugin(self, record: PluginRecord) -> None:
        """Import a plugin and pass its info to `accept_info`; errors mark the record as failed."""
        (entry, *_) = record.entries
        skip_package(entry.value)
        load = partial(self._load_with_hooks, entry)
        is_threaded = self.has_time_limit and not _is_initialising(entry)
        loaded, error = (
            call_with_time_limit("the import of the plugin", load)
            if is_threaded
            else call_catching(load)
        )
        if error is None:
            record.manager, record.file, info = loaded
            _, error = call_catching(partial(self.accept_info, record, info))
        if error is not None:
            record.fail(
                PluginState.IMPORT_FAILED,
                error_line(error),
                _build_import_hint(record, error),
                error,
            )

    def _load_with_hooks(self, entry: PluginEntry) -> tuple[pluggy.PluginManager, str, object]:
        """Import a plugin; return its hook manager, its file and its description."""
        plugin = entry.load()
        manager = self._create_manager(plugin, entry.name)
        info: object = getattr(manager.hook, self.info_hook)()
        return manager, str(getattr(plugin, "__file__", "") or ""), info

    def _create_manager(self, plugin: object, name: str) -> pluggy.PluginManager:
        """Build the hook manager of one plugin. Raises: PluginError for wrong or missing hooks."""
        manager = pluggy.PluginManager("dovetail")
        manager.add_hookspecs(self.hooks)
        manager.register(plugin, name=name)
        self._require_marked_hooks(manager, plugin)
        callers = manager.get_hookcallers(plugin) or []
        for caller in callers:
            if not caller.has_spec():
                hooks = [name for name in vars(self.hooks) if name.startswith("dovetail_")]
                near = nearest_names(caller.name, hooks)
                all_hooks = f"; the hooks are {', '.join(hooks)}"
                mend = f'; did you mean "{near[0]}"?' if near else all_hooks
                raise PluginError(f'"{caller.name}" is not a hook of dovetail{mend}')
        manager.check_pending()
        required, implemented = (self.info_hook, *self.required), {c.name for c in callers}
        missing = [name for name in required if name not in implemented]
        if missing:
            raise PluginError(
                f"every plugin must implement {', '.join(required)}; missing: {', '.join(missing)}"
            )
        return manager

    def _require_marked_hooks(self, manager: pluggy.PluginManager, plugin: object) -> None:
        """Raise PluginError if a function has a hook's name but no mark as a hook."""
        marked = f"{manager.project_name}_impl"
        for name in vars(self.hooks):
            own = getattr(plugin, name, None) if name.startswith("dovetail_") else None
            if callable(own) and not hasattr(own, marked):
                raise PluginError(f'"{name}" must be marked as a hook; put @hookimpl before it')

    def unknown_name_error(self, name: str) -> DovetailError:
        """Build the error for a name that no plugin has; a subclass may add advice."""
        return PluginError(f'no {self.plugin_kind} "{name}" is installed')

    def check_description(
        self,
        record: PluginRecord,
        name: str,
        minimum_interface: tuple[int, ...],
        interface: str = "",
    ) -> bool:
        """Return True if name and interface fit; else mark the record as failed, return False.

        `interface`: its name in the error, by default the kind of plugin.
        """
        if name != record.type:
            record.fail(
                PluginState.IMPORT_FAILED,
                f'its entry point is named "{record.type}" but its info says "{name}"',
                f"tell the authors of {record.distribution}",
            )
        elif tuple(minimum_interface) > self.interface:
            required, current = (".".join(map(str, v)) for v in (minimum_interface, self.interface))
            record.fail(
                PluginState.API_MISMATCH,
                f"it needs {interface or self.plugin_kind} interface {required}, but this "
                f"dovetail offers {current}",
                reinstall_command(CORE_DISTRIBUTION),
            )
        else:
            return True
        return False

    def call(self, record: PluginRecord, hook: str, **arguments: object) -> Any:
        """Call a hook of one plugin; return None if the plugin does not implement it."""
        return None if record.manager is None else getattr(record.manager.hook, hook)(**arguments)

    def call_texts_hook(self, record: PluginRecord, hook: str) -> dict[str, str]:
        """Call a hook for texts by name; {} if missing. Raises: PluginError for other results."""
        return validate_hooks.validate_texts(hook, self.call(record, hook))


def nearest_names(name: str, known: Iterable[str]) -> list[str]:
    """Return a list of the one known name most similar to `name`, or of none."""
    import difflib  # 3 ms, not part of `import dovetail`

    return difflib.get_close_matches(name, list(known), 1)


def _is_initialising(entry: PluginEntry) -> bool:
    """Return True if the plugin's package is being imported now; a thread would wait for that."""
    package = sys.modules.get(entry.value.strip().partition(":")[0].partition(".")[0])
    return bool(getattr(getattr(package, "__spec__", None), "_initializing", False))


def _build_import_hint(record: PluginRecord, error: BaseException) -> str:
    """Return the advice for a failed import: a pip command, or a way to remove the plugin."""
    if isinstance(error, ModuleNotFoundError) and error.name:
        missing = f"(the module {error.name} is missing)"
        return f"{reinstall_command(record.distribution, '--force-reinstall')} {missing}"
    return f"{reinstall_command(record.distribution)}, or pip uninstall it"
