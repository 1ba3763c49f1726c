"""Data sets, samplers and the loader: PyTorch's names, arguments and defaults."""

__all__: list[str] = []
