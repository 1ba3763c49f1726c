"""The kit's options, which pytest loads in every session, by an entry point.

The kit itself (`plugin`) is loaded when a device is named.
"""

from __future__ import annotations

import pytest

KIT = "dovetail.testing.plugin"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the kit's options, once."""
    group = parser.getgroup("dovetail", "dovetail conformance kit")
    if group.options:  # added before: by the entry point, or with `-p dovetail.testing.plugin`
        return
    group.addoption("--dovetail-device", metavar="NAME", help="the device under test")
    group.addoption(
        "--dovetail-layout", metavar="NAME", help="the layout under test, on that device"
    )
    group.addoption(
        "--dovetail-dtype", metavar="NAME", help="the plugin's dtype under test, on that device"
    )
    group.addoption(
        "--dovetail-report", metavar="FILE", help="write the certificate, as JSON, to FILE"
    )
    group.addoption(
        "--dovetail-sample",
        metavar="N",
        type=int,
        default=1,
        help="run about one case in N, and one of each test",
    )


NO_DEVICE = "the conformance kit needs a device: give --dovetail-device=NAME"


def pytest_configure(config: pytest.Config) -> None:
    """Load the kit if a device is named. Raises: UsageError for cases of the kit without one."""
    if config.getoption("--dovetail-device"):
        config.pluginmanager.import_plugin(KIT)
    elif any(str(a).startswith("dovetail.testing") for a in config.invocation_params.args):
        raise pytest.UsageError(NO_DEVICE)  # here, since workers of pytest-xdist cannot report it


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Raise UsageError if cases of the kit are to run on no device."""
    modules = (getattr(item, "module", None) for item in items)
    ours = any(m is not None and m.__name__.startswith("dovetail.testing.") for m in modules)
    if ours and not config.getoption("--dovetail-device"):
        raise pytest.UsageError(NO_DEVICE)
