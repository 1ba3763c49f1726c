"""The backend of the package einops for tensors: `einops.rearrange(x, "b c -> c b")`.

einops finds a backend among the subclasses of its `AbstractBackend`, so the class must exist once
einops is imported. An import of dovetail does not import einops.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

import numpy as np

from ...tensor.tensor import Tensor
from ..creation.from_values import asarray

BACKENDS = "einops._backends"  # the module of einops that defines its backends


def define_backend(backends: Any) -> None:
    """Define the backend as a subclass of the one for NumPy, in the module `backends`."""

    class DovetailBackend(backends.NumpyBackend):  # type: ignore[misc]  # einops has no hints here
        """The functions of dovetail that einops calls."""

        framework_name = __name__.partition(".")[0]

        def __init__(self) -> None:
            self.np = sys.modules[self.framework_name]

        def is_appropriate_type(self, tensor: object) -> bool:
            return isinstance(tensor, Tensor)

        def from_numpy(self, x: np.ndarray) -> Tensor:
            return asarray(x)

        def to_numpy(self, x: Tensor) -> np.ndarray:
            return np.asarray(x.detach())

        def concat(self, tensors: Sequence[Tensor], axis: int) -> Tensor:
            joined: Tensor = self.np.concat(tensors, axis=axis)
            return joined

    backends.DovetailBackend = DovetailBackend  # a subclass that nothing refers to would vanish


class _EinopsFinder:
    """An import finder that defines the backend when einops is imported."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of einops's module of backends, whose loader also defines ours."""
        spec = PathFinder.find_spec(name, path, target) if name == BACKENDS else None
        if spec is None or spec.loader is None:
            return None
        loader: Any = spec.loader
        execute = loader.exec_module

        def execute_and_define(module: ModuleType) -> None:
            """Execute the module, then define the backend."""
            execute(module)
            define_backend(module)

        loader.exec_module = execute_and_define
        return spec


def install() -> None:
    """Define the backend now if einops is imported, else when it will be."""
    if BACKENDS in sys.modules:
        define_backend(sys.modules[BACKENDS])
    else:
        sys.meta_path.insert(0, _EinopsFinder())
