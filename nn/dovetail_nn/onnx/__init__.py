"""Models as ONNX: written from functions and modules, and read to run on any device."""

from .export import export
from .model import Model, load

__all__ = ["Model", "export", "load"]
