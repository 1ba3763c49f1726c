"""dovetail on any OpenCL device."""

__version__ = "0.1.0"
