"""The sparse COO layout, a layout plugin shipped with the core; it comes with a later version."""

__all__: list[str] = []
