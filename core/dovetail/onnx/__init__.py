"""ONNX models: export of functions and modules, and import that runs on any device."""

from typing import TYPE_CHECKING

from ..nn.call_errors import explain_all
from ..nn.missing_names import refused
from .export import export
from .model import Model, load

__all__ = ["Model", "export", "load"]

explain_all(globals(), __all__)

if not TYPE_CHECKING:
    __getattr__ = refused("onnx")
