"""Logs of training for TensorBoard."""

__all__: list[str] = []
