"""The installed backends, by device type."""

from importlib.metadata import entry_points

INSTALLED = {e.name for e in entry_points(group="dovetail.backends.v1")}
