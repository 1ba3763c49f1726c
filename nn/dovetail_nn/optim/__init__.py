"""Optimisers and schedules of their rates: PyTorch's names, arguments and defaults."""

__all__: list[str] = []
