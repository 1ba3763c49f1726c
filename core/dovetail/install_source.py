"""The source that dovetail was installed from, and commands that install missing packages."""

from __future__ import annotations

import re
from pathlib import Path

from .entry import offered_backends

_CHECKOUT_ROOT = Path(__file__).parents[3]  # the checkout, if the sources are imported in place


def find_checkout() -> Path | None:
    """Return the source folder that dovetail was installed from, which contains its backends.

    None if it came from an index or an archive, according to pip's `direct_url.json`.
    """
    return next(
        (
            root
            for root in (_CHECKOUT_ROOT, _find_install_source())
            if root and distribution_folders(root)
        ),
        None,
    )


def _find_install_source() -> Path | None:
    # not part of `import dovetail`, here and below
    """Return the local folder or archive in pip's direct_url.json, or None."""
    import importlib.metadata as metadata
    import json
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    try:
        text = metadata.distribution("dovetail").read_text("direct_url.json")
        url = urlsplit(json.loads(text or "{}").get("url", ""))
    except (metadata.PackageNotFoundError, ValueError, AttributeError):
        return None
    return Path(url2pathname(url.path)) if url.scheme == "file" else None


def distribution_folders(root: Path) -> dict[str, Path]:
    """Return {distribution: folder} of a checkout's sources; {} for another folder."""
    import tomllib

    if not (root / "core" / "dovetail").is_dir():
        return {}
    folder_of = {}
    for path in (root / "pyproject.toml", *sorted((root / "backends").glob("*/pyproject.toml"))):
        try:
            project = tomllib.loads(path.read_text("utf-8"))["project"]
            folder_of[str(project["name"])] = path.parent
        except (OSError, ValueError, KeyError):
            continue
    return folder_of


def install_command(distribution: str, option: str = "") -> str:
    """Return the pip command that installs a distribution from the source of this dovetail.

    >>> from dovetail.plugins.install_source import install_command
    >>> install_command("dovetail-cpu-llvm").startswith("pip install ")
    True
    """
    root = find_checkout()
    folder = None if root is None else distribution_folders(root).get(distribution)
    requirement = distribution if folder is None else f"-e {_quote_pip_path(folder)}"
    return " ".join(filter(None, ("pip install", option, requirement)))


def _quote_pip_path(folder: Path) -> str:
    """Return a folder, quoted for a shell, relative to the current folder if it is below."""
    import shlex

    current_folder = Path.cwd()
    text = folder.as_posix()
    if folder.is_relative_to(current_folder):
        text = f"./{folder.relative_to(current_folder).as_posix()}".removesuffix("/.")
    return text if re.fullmatch(r"[\w./:-]+", text) else shlex.quote(text)


def reinstall_command(distribution: str, option: str = "--upgrade") -> str:
    """Return a pip command for dovetail's own distributions, and a sentence for others.

    A command is given only for dovetail's own distributions: strangers may have registered the name
    of a private plugin.
    """
    if distribution in ("dovetail", *offered_backends().values()):
        return install_command(distribution, option)
    return f"reinstall {distribution} from its source"
