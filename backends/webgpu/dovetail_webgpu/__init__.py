"""dovetail on any WebGPU device, by the wgpu wheel."""

__version__ = "0.1.0"
