"""Read by Python at its start where this folder is on PYTHONPATH: children of a process with the
double get it too, when they import dovetail_cuda.
"""

import sys
from importlib.util import find_spec

ROOM = "dovetail_cuda.driver"


class Installer:
    """Finds one module as everybody else does, and puts the double into it once it is there."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):  # type: ignore[no-untyped-def]
        if name != ROOM:
            return None
        sys.meta_path.remove(cls)
        spec = find_spec(name)
        fill = spec.loader.exec_module

        def exec_module(module):  # type: ignore[no-untyped-def]
            fill(module)
            from cuda_double import driver, nvrtc

            module.driver, module.nvrtc = driver, nvrtc

        spec.loader.exec_module = exec_module
        return spec


sys.meta_path.insert(0, Installer)
