"""Kinds of broken plugins as data: the code at import and in each hook, and the resulting state."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import NamedTuple

from dovetail.plugins.plugin_state import PluginState

TEMPLATE = """
import itertools, os, signal, sys, threading, time, warnings
from dataclasses import replace
from dovetail.backend.reference import ReferenceBackend
from dovetail.extend import Backend, BackendInfo, Capabilities, DeviceInfo, Unavailable, float32
from dovetail.extend import hookimpl

TYPE = {name!r}
READY = replace(ReferenceBackend.info, type=TYPE)

class Odd(BaseException):
    pass

class Unprintable(Exception):
    def __str__(self):
        raise SystemExit("no text")

class Silent:
    def __getattr__(self, name):
        raise Odd(name)

    def __repr__(self):
        raise Odd("repr")

{top}
@hookimpl
def dovetail_backend_info():
{info}

@hookimpl
def dovetail_probe(config):
{probe}

@hookimpl
def dovetail_open(info, config):
{open}

{bottom}
"""


class Kind(NamedTuple):
    """The code of one broken plugin; parts that are not given are those of a healthy one.

    `state`: the state after it is probed and then opened. `text`: a part of its error.
    """

    state: PluginState
    text: str
    top: str = ""
    info: str = 'return BackendInfo(TYPE, "1")'
    probe: str = "return [READY]"
    open: str = "return ReferenceBackend()"
    bottom: str = ""
    attribute: str = ""  # the module that the entry point names

    def write(self, folder: Path, name: str) -> None:
        """Write the plugin's module."""
        parts = {part: textwrap.indent(getattr(self, part), "    ") for part in HOOKS}
        text = TEMPLATE.format(name=name, top=self.top, bottom=self.bottom, **parts)
        folder.joinpath(f"plugin_{name}.py").write_text(text)


HOOKS = ("info", "probe", "open")
WRONG_IMPORT = PluginState.IMPORT_FAILED
WRONG_PROBE = PluginState.PROBE_FAILED
WRONG_OPEN = PluginState.OPEN_FAILED
FOREVER = "time.sleep(1000)"

KINDS = {
    # --- at import
    "import_exits": Kind(WRONG_IMPORT, "SystemExit: 3", "sys.exit(3)"),
    "import_exits_well": Kind(WRONG_IMPORT, "SystemExit: 0", "raise SystemExit(0)"),
    "import_interrupts": Kind(WRONG_IMPORT, "KeyboardInterrupt", "raise KeyboardInterrupt"),
    "import_generator_exit": Kind(WRONG_IMPORT, "GeneratorExit", "raise GeneratorExit"),
    "import_base_exception": Kind(WRONG_IMPORT, "Odd: mine", 'raise Odd("mine")'),
    "import_unprintable": Kind(WRONG_IMPORT, "Unprintable: <", "raise Unprintable"),
    "import_syntax_error": Kind(WRONG_IMPORT, "SyntaxError", "def"),
    "import_recursion": Kind(WRONG_IMPORT, "RecursionError", "def f(): f()\nf()"),
    "import_out_of_memory": Kind(WRONG_IMPORT, "MemoryError", "raise MemoryError"),
    "import_surrogates": Kind(WRONG_IMPORT, "\\udc80", 'raise OSError("\\udc80")'),
    "import_long_text": Kind(WRONG_IMPORT, "xxx", 'raise OSError("x" * 10_000_000)'),
    "import_group": Kind(
        WRONG_IMPORT, "BaseExceptionGroup", 'raise BaseExceptionGroup("two", [SystemExit(), Odd()])'
    ),
    "import_removes_itself": Kind(WRONG_IMPORT, "KeyError", "del sys.modules[__name__]"),
    "import_is_none": Kind(WRONG_IMPORT, "implement", bottom="sys.modules[__name__] = None"),
    "import_hangs": Kind(WRONG_IMPORT, "DOVETAIL_PROBE_SECONDS", FOREVER),
    "import_no_attribute": Kind(WRONG_IMPORT, "AttributeError", attribute="missing.part"),
    "import_object_raises": Kind(WRONG_IMPORT, "Odd", bottom="it = Silent()", attribute="it"),
    # --- in the info
    "info_exits": Kind(WRONG_IMPORT, "SystemExit: 1", info="sys.exit(1)"),
    "info_hangs": Kind(WRONG_IMPORT, "DOVETAIL_PROBE_SECONDS", info=FOREVER),
    "info_none": Kind(WRONG_IMPORT, "must return a BackendInfo", info="return None"),
    "info_number": Kind(WRONG_IMPORT, "a BackendInfo, got 5", info="return 5"),
    "info_silent": Kind(WRONG_IMPORT, "a BackendInfo, got a Silent", info="return Silent()"),
    "info_type_number": Kind(WRONG_IMPORT, "BackendInfo.type", info='return BackendInfo(7, "1")'),
    "info_version_number": Kind(
        WRONG_IMPORT, "BackendInfo.version", info="return BackendInfo(TYPE, 1)"
    ),
    "info_interface_number": Kind(
        WRONG_IMPORT, "must be two ints", info='return BackendInfo(TYPE, "1", 1)'
    ),
    "info_interface_texts": Kind(
        WRONG_IMPORT, "must be two ints", info='return BackendInfo(TYPE, "1", ("1", "0"))'
    ),
    "info_interface_long": Kind(
        WRONG_IMPORT, "must be two ints", info='return BackendInfo(TYPE, "1", (1, 0, 0))'
    ),
    "info_summary_none": Kind(
        WRONG_IMPORT, "BackendInfo.summary", info='return BackendInfo(TYPE, "1", (1, 0), None)'
    ),
    "info_other_type": Kind(WRONG_IMPORT, '"other"', info='return BackendInfo("other", "1")'),
    "info_is_no_function": Kind(
        WRONG_IMPORT, "every plugin must implement", bottom="dovetail_backend_info = 5"
    ),
    # --- in the probe
    "probe_exits": Kind(WRONG_PROBE, "SystemExit: 2", probe="sys.exit(2)"),
    "probe_interrupts": Kind(WRONG_PROBE, "KeyboardInterrupt", probe="raise KeyboardInterrupt"),
    "probe_generator_exit": Kind(WRONG_PROBE, "GeneratorExit", probe="raise GeneratorExit"),
    "probe_base_exception": Kind(WRONG_PROBE, "Odd", probe="raise Odd"),
    "probe_stop_iteration": Kind(WRONG_PROBE, "StopIteration", probe="raise StopIteration"),
    "probe_unprintable": Kind(WRONG_PROBE, "Unprintable: <", probe="raise Unprintable"),
    "probe_hangs": Kind(WRONG_PROBE, "DOVETAIL_PROBE_SECONDS", probe=FOREVER),
    "probe_spins": Kind(WRONG_PROBE, "within", probe="while True: time.sleep(0.001)"),
    "probe_locks": Kind(
        WRONG_PROBE, "within", probe="lock = threading.Lock()\nlock.acquire()\nlock.acquire()"
    ),
    "probe_asks_for_itself": Kind(
        WRONG_PROBE, "dovetail", probe="import dovetail as dt\nreturn dt.zeros(1, device=TYPE)"
    ),
    "probe_warns": Kind(WRONG_PROBE, "UserWarning", probe='raise UserWarning("old driver")'),
    "probe_none": Kind(WRONG_PROBE, "got None", probe="return None"),
    "probe_number": Kind(WRONG_PROBE, "got 3", probe="return 3"),
    "probe_text": Kind(WRONG_PROBE, "got 'gpu'", probe='return "gpu"'),
    "probe_mapping": Kind(WRONG_PROBE, "got a dict", probe="return {0: READY}"),
    "probe_one_device": Kind(WRONG_PROBE, "got a DeviceInfo", probe="return READY"),
    "probe_no_device": Kind(WRONG_PROBE, "no device", probe="return ()"),
    "probe_list_of_none": Kind(WRONG_PROBE, "got None", probe="return [None]"),
    "probe_list_of_silent": Kind(WRONG_PROBE, "got a Silent", probe="return [Silent()]"),
    "probe_without_end": Kind(
        WRONG_PROBE,
        "at most",
        probe="return (replace(READY, index=i) for i in itertools.count())",
    ),
    "probe_ends_midway": Kind(
        WRONG_PROBE, "SystemExit", probe="return (READY if i else sys.exit() for i in (1, 0))"
    ),
    "probe_other_type": Kind(
        WRONG_PROBE, "one of type 'cpu'", probe='return [replace(READY, type="cpu")]'
    ),
    "probe_type_number": Kind(
        WRONG_PROBE, "one of type 5", probe="return [replace(READY, type=5)]"
    ),
    "probe_index_negative": Kind(WRONG_PROBE, ":-1'", probe="return [replace(READY, index=-1)]"),
    "probe_index_text": Kind(WRONG_PROBE, "index", probe='return [replace(READY, index="0")]'),
    "probe_index_none": Kind(WRONG_PROBE, "index", probe="return [replace(READY, index=None)]"),
    "probe_index_fraction": Kind(WRONG_PROBE, "index", probe="return [replace(READY, index=0.5)]"),
    "probe_index_bool": Kind(WRONG_PROBE, "True", probe="return [replace(READY, index=True)]"),
    "probe_index_huge": Kind(WRONG_PROBE, "99", probe="return [replace(READY, index=10**30 - 1)]"),
    "probe_index_twice": Kind(WRONG_PROBE, "must be distinct", probe="return [READY, READY]"),
    "probe_name_none": Kind(WRONG_PROBE, "name", probe="return [replace(READY, name=None)]"),
    "probe_name_bytes": Kind(WRONG_PROBE, "name", probe='return [replace(READY, name=b"card")]'),
    "probe_fingerprint_none": Kind(
        WRONG_PROBE, "fingerprint", probe="return [replace(READY, fingerprint=None)]"
    ),
    "probe_memory_text": Kind(
        WRONG_PROBE, "total_memory", probe='return [replace(READY, total_memory="8 GiB")]'
    ),
    "probe_details_list": Kind(
        WRONG_PROBE, "details", probe="return [replace(READY, details=[1])]"
    ),
    "probe_details_numbers": Kind(
        WRONG_PROBE, "details", probe="return [replace(READY, details={1: 2})]"
    ),
    "probe_capabilities_none": Kind(
        WRONG_PROBE, "Capabilities", probe="return [replace(READY, capabilities=None)]"
    ),
    "probe_capabilities_texts": Kind(
        WRONG_PROBE,
        "Capabilities.dtypes",
        probe='return [replace(READY, capabilities=Capabilities(dtypes="float32"))]',
    ),
    "probe_alignment_odd": Kind(
        WRONG_PROBE, "power of two", probe="return [Capabilities(offset_alignment=3)]"
    ),
    "probe_unavailable_none": Kind(
        WRONG_PROBE, "Unavailable.reason", probe="return Unavailable(None, None)"
    ),
    # --- when it is opened
    "open_exits": Kind(WRONG_OPEN, "SystemExit: 4", open="sys.exit(4)"),
    "open_generator_exit": Kind(WRONG_OPEN, "GeneratorExit", open="raise GeneratorExit"),
    "open_base_exception": Kind(WRONG_OPEN, "Odd", open="raise Odd"),
    "open_unprintable": Kind(WRONG_OPEN, "Unprintable: <", open="raise Unprintable"),
    "open_none": Kind(WRONG_OPEN, "must return a Backend", open="return None"),
    "open_class": Kind(WRONG_OPEN, "must return a Backend", open="return ReferenceBackend"),
    "open_silent": Kind(WRONG_OPEN, "must return a Backend", open="return Silent()"),
    "open_itself": Kind(
        WRONG_OPEN, "could not be opened", open="import dovetail as dt\ndt.zeros(1, device=TYPE)"
    ),
    "companion_number": Kind(WRONG_OPEN, "names 7", probe="return [replace(READY, companion=7)]"),
    "companion_itself": Kind(
        WRONG_OPEN, "its own", probe="return [replace(READY, companion=TYPE)]"
    ),
    "companion_absent": Kind(
        WRONG_OPEN, "no backend for", probe='return [replace(READY, companion="nowhere")]'
    ),
}
