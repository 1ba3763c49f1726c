"""dovetail on any Vulkan device."""

__version__ = "0.1.0"
