"""dovetail on NVIDIA's GPUs."""

__version__ = "0.1.0"
