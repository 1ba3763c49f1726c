"""Functions of networks: PyTorch's names, arguments and defaults; each of tensor operations."""

__all__: list[str] = []
