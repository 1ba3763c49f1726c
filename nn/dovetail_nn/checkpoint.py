"""Checkpoints: what a training run is to go on from, kept in files."""

__all__: list[str] = []
