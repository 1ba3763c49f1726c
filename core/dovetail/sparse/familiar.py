"""What others' names for sparse tensors are here, for the error of who asks for them."""

from __future__ import annotations

from typing import NoReturn

from dovetail.extend import arguments


def refuse(name: str) -> NoReturn:
    """The `__getattr__` of the package. Raises: AttributeError."""
    known = arguments.hints.find("sparse", name)
    raise AttributeError(f"module 'dovetail.sparse' has no attribute {name!r}{known}")
