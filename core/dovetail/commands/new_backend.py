"""`dovetail new-backend NAME`: writes the package of a new backend, which works as it stands.

The package is a folder of `template/`, with NAME replaced in texts and in names of files; kernels
are C, for the system's compiler. Its author then replaces one part after the other.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..command_line import Parser, one_line
from ..command_line import folder as folder_there
from ..errors import ArgumentError
from ..plugins.entry import offers
from ..plugins.install_source import obtain
from ..plugins.registry import registry

TEMPLATE = Path(__file__).parent / "template"
HOST = "host"
KINDS = {  # a folder of the template each
    HOST: "its memory is the host's, and a launch is a call",
    "accelerator": "memory of its own, and queues that work later",
}
NAME = "NAME"  # the placeholder of the device type in the template
SUFFIXES = (".md", ".py", ".toml")
# Names that would be mistaken for a bridge to a library, besides modules of Python's library.
LIBRARIES = (
    "array_api_compat", "cupy", "dask", "dovetail", "jax", "mlx", "numba", "numpy", "onnx",
    "onnxruntime", "pandas", "pytest", "scipy", "sklearn", "sparse", "tensorflow", "torch",
    "triton",
)  # fmt: skip


def main(arguments: Sequence[str]) -> int:
    """Write the package; return 0, or 2 if the name or the folder is not valid."""
    options = parser()
    asked = options.parse_args(arguments)
    try:
        folder = new_backend(asked.name, asked.into, asked.kind)
    except (ArgumentError, OSError) as error:
        return options.refusal(one_line(error))
    print(
        f"{folder} is a backend for device type {asked.name!r}. Next:\n"
        f"    pip install --editable {folder}\n"
        f"    dovetail test-backend {asked.name}\n"
        f"Its README.md says which parts to replace for your hardware."
    )
    return 0


def parser() -> Parser:
    """Return the options of this command."""
    options = Parser(prog="dovetail new-backend", description=__doc__.partition("\n")[0])
    options.add_argument("name", metavar="NAME", help="the new device type, e.g. fpga")
    options.add_argument(
        "-o",
        "--out",
        "--into",
        metavar="DIR",
        dest="into",
        type=folder_there,
        default=Path(),
        help="the folder, which is there, to write into",
    )
    kinds = "; ".join(f"{kind}: {what}" for kind, what in KINDS.items())
    options.add_argument(
        "--kind", choices=[*KINDS], default=HOST, help=f"{kinds} (default: {HOST})"
    )
    return options


def new_backend(name: str, into: Path, kind: str = HOST) -> Path:
    """Write the new package under `into`, and return its folder. `kind`: one of KINDS.

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
    """Yield the files of the package for a device type: path in the package, and text."""
    folder = TEMPLATE / kind
    for path in sorted(folder.rglob("*")):
        if path.suffix in SUFFIXES:
            relative = str(path.relative_to(folder)).replace(NAME, name)
            yield Path(relative), path.read_text(encoding="utf-8").replace(NAME, name)


def check_name(name: str) -> None:
    """Check the name of a device type. Raises: ArgumentError if it is invalid or taken."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise ArgumentError(
            f"{name!r} names no device type: use lower-case letters, digits and _, a letter first"
        )
    if name in LIBRARIES or name in sys.stdlib_module_names:
        raise ArgumentError(
            f"{name} is the name of a library of Python's, and dovetail-{name} would be taken for "
            "a bridge to it; name the device, as in fpga"
        )
    plugin_records = registry.records()
    if name in plugin_records:
        owner = plugin_records[name].distribution
        raise ArgumentError(f"device type {name!r} exists: {owner} brings it; choose another name")
    if name in offers():
        raise ArgumentError(f"device type {name!r} exists: {obtain(offers()[name])} brings it")
    if importlib.util.find_spec(f"dovetail_{name}") is not None:
        raise ArgumentError(f"a package dovetail_{name} is installed; choose another name")
