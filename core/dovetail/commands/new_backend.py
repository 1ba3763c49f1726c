"""`dovetail new-backend NAME`: write the package of a new backend, which works unchanged.

The package is a folder of `template/`, with NAME_PLACEHOLDER replaced in texts and in names of
files; kernels are C, for the system's compiler. Its author then replaces one part after the other.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..command_line import CommandParser, format_error
from ..command_line import existing_folder as folder_there
from ..errors import ArgumentError
from ..install_source import backend_distributions, install_command
from ..plugins.registry import registry

TEMPLATE = Path(__file__).parent / "template"
HOST = "host"
TEMPLATE_KINDS = {  # a folder of the template each
    HOST: "memory of the host, a launch is a function call",
    "accelerator": "memory of its own, asynchronous queues",
}
NAME_PLACEHOLDER = "NAME"  # the placeholder of the device type in the template
SUFFIXES = (".md", ".py", ".toml")
# Names that would be mistaken for a bridge to a library, besides modules of Python's library.
RESERVED_NAMES = (
    "array_api_compat", "cupy", "dask", "dovetail", "jax", "mlx", "numba", "numpy", "onnx",
    "onnxruntime", "pandas", "pytest", "scipy", "sklearn", "sparse", "tensorflow", "torch",
    "triton",
)  # fmt: skip


def main(arguments: Sequence[str]) -> int:
    """Write the package and print the next steps; return 0, or 2 for an invalid name or folder."""
    options = parser()
    asked = options.parse_args(arguments)
    try:
        folder = new_backend(asked.name, asked.into, asked.kind)
    except (ArgumentError, OSError) as error:
        return options.print_error(format_error(error))
    print(
        f"wrote {folder}, a backend for device type {asked.name!r}. Next steps:\n"
        f"    {install_command(folder)}\n"
        f"    dovetail test-backend {asked.name}\n"
        f"See its README.md for the parts to replace for your hardware."
    )
    return 0


def parser() -> CommandParser:
    """Build the argument parser of this command."""
    options = CommandParser(prog="dovetail new-backend", description=__doc__.partition("\n")[0])
    options.add_argument("name", metavar="NAME", help="name the new device type, e.g. fpga")
    options.add_argument(
        "-o",
        "--out",
        "--into",
        metavar="DIR",
        dest="into",
        type=folder_there,
        default=Path(),
        help="write into the existing folder DIR (default: the current one)",
    )
    kinds = "; ".join(f"{kind}: {what}" for kind, what in TEMPLATE_KINDS.items())
    options.add_argument(
        "--kind",
        choices=[*TEMPLATE_KINDS],
        default=HOST,
        help=f"choose the kind of device: {kinds} (default: {HOST})",
    )
    return options


def new_backend(name: str, into: Path, kind: str = HOST) -> Path:
    """Write a package of a kind in TEMPLATE_KINDS to a new folder under `into`; return the folder.

    Raises: ArgumentError for a name that cannot be used, FileExistsError if the folder is there.
    """
    check_name(name)
    folder = into / f"dovetail-{name}"
    folder.mkdir(parents=True)
    for relative, text in files(name, kind):
        path = folder / relative
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def files(name: str, kind: str = HOST) -> Iterator[tuple[Path, str]]:
    """Yield path and text of each file of the new package, with the device type as NAME."""
    folder = TEMPLATE / kind
    for path in sorted(folder.rglob("*")):
        if path.suffix in SUFFIXES:
            relative = str(path.relative_to(folder)).replace(NAME_PLACEHOLDER, name)
            yield Path(relative), path.read_text(encoding="utf-8").replace(NAME_PLACEHOLDER, name)


def check_name(name: str) -> None:
    """Raise ArgumentError if the name of a device type is invalid or already used."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise ArgumentError(
            f"a device type must consist of a-z, 0-9 and _, with a letter first, got {name!r}"
        )
    if name in RESERVED_NAMES or name in sys.stdlib_module_names:
        raise ArgumentError(
            f"{name} is the name of a Python library, and dovetail-{name} would look like a bridge "
            "to it; name the device, as in fpga"
        )
    plugin_records = registry.records()
    if name in plugin_records:
        owner = plugin_records[name].distribution
        raise ArgumentError(f"device type {name!r} already exists in {owner}; choose another name")
    if name in backend_distributions():
        raise ArgumentError(
            f"device type {name!r} already exists; to install it: "
            f"{install_command(backend_distributions()[name])}"
        )
    if importlib.util.find_spec(f"dovetail_{name}") is not None:
        raise ArgumentError(
            f"the package dovetail_{name} is already installed; choose another name"
        )
