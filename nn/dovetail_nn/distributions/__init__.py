"""Distributions: PyTorch's names, arguments and defaults."""

__all__: list[str] = []
