"""Where dovetail was installed from, and so which commands install what is missing."""

from __future__ import annotations

import re
from pathlib import Path

from .entry import offers

_HERE = Path(__file__).parents[3]  # the checkout, where the sources are imported as they lie


def checkout() -> Path | None:
    """The folder of sources that dovetail was installed from, with its backends beside it.

    None where it came from an index, or as a file: pip notes in `direct_url.json` what it did.
    """
    return next((root for root in (_HERE, _installed_from()) if root and folders(root)), None)


def _installed_from() -> Path | None:
    # what `import dovetail` need not pay, here and below
    import importlib.metadata as metadata
    import json
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    try:
        noted = metadata.distribution("dovetail").read_text("direct_url.json")
        url = urlsplit(json.loads(noted or "{}").get("url", ""))
    except (metadata.PackageNotFoundError, ValueError, AttributeError):
        return None
    return Path(url2pathname(url.path)) if url.scheme == "file" else None


def folders(root: Path) -> dict[str, Path]:
    """The distributions whose sources are in a checkout of dovetail: name -> folder."""
    import tomllib

    if not (root / "core" / "dovetail").is_dir():
        return {}
    found = {}
    for path in (root / "pyproject.toml", *sorted((root / "backends").glob("*/pyproject.toml"))):
        try:
            project = tomllib.loads(path.read_text("utf-8"))["project"]
            found[str(project["name"])] = path.parent
        except (OSError, ValueError, KeyError):
            continue
    return found


def obtain(distribution: str, option: str = "") -> str:
    """The command that installs one of dovetail's distributions, where this one came from.

    >>> from dovetail.plugins.origin import obtain
    >>> obtain("dovetail-cpu-llvm").startswith("pip install ")
    True
    """
    root = checkout()
    folder = None if root is None else folders(root).get(distribution)
    what = distribution if folder is None else f"-e {_shown(folder)}"
    return " ".join(filter(None, ("pip install", option, what)))


def _shown(folder: Path) -> str:
    """A folder as pip takes it: from where the user is, if it is below."""
    import shlex

    here = Path.cwd()
    text = folder.as_posix()
    if folder.is_relative_to(here):
        text = f"./{folder.relative_to(here).as_posix()}".removesuffix("/.")
    return text if re.fullmatch(r"[\w./:-]+", text) else shlex.quote(text)


def reinstall(distribution: str, option: str = "--upgrade") -> str:
    """How to get a distribution anew.

    A command only for dovetail's own: anybody may register the name of somebody's private plugin.
    """
    if distribution in ("dovetail", *offers().values()):
        return obtain(distribution, option)
    return f"get {distribution} anew from where it came"
