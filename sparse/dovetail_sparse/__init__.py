"""The sparse COO layout, a layout plugin shipped with the core. Its ops come with a later version."""

__all__: list[str] = []
