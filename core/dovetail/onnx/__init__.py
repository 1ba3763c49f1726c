"""ONNX models: export of functions and modules, and import that runs on any device."""

from typing import TYPE_CHECKING

from dovetail.extend import publish_all

from ..nn.call_errors import explain_all
from ..nn.missing_names import make_module_getattr
from .export import export
from .model import Model, load

__all__ = ["Model", "export", "load"]

explain_all(globals(), __all__)
publish_all(globals())


def __dir__() -> list[str]:
    return __all__


if not TYPE_CHECKING:
    __getattr__ = make_module_getattr("onnx")
