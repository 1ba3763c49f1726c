"""The source that dovetail was installed from, and every text that says "pip install"."""

from __future__ import annotations

import re
from pathlib import Path

CORE_DISTRIBUTION = "dovetail-tensor"
_CHECKOUT_ROOT = Path(__file__).parents[2]  # the checkout, if the sources are imported in place
# A backend that an extra named after its device type installs. "dovetail-tensor[...]" is none.
_BACKEND_PATTERN = r"""(dovetail-(?!dtypes)[\w-]+)(?![\w[-])[^;]*;.*extra\s*==\s*['"](\w+)['"]"""


def backend_distributions() -> dict[str, str]:
    """Return the backends that are extras of dovetail: {device type: distribution}."""
    import importlib.metadata as metadata  # 16 ms, not part of `import dovetail`, here and below

    try:
        requires = metadata.requires(CORE_DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        return {}
    matches = (re.match(_BACKEND_PATTERN, line) for line in requires)
    return {match[2]: match[1] for match in matches if match}


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
    """Return the local folder or archive in pip's direct_url.json, or None."""
    import importlib.metadata as metadata
    import json
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    try:
        text = metadata.distribution(CORE_DISTRIBUTION).read_text("direct_url.json")
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
    folders = (root, *sorted((root / "backends").glob("*/")), root / "dtypes")
    for path in (folder / "pyproject.toml" for folder in folders):
        try:
            project = tomllib.loads(path.read_text("utf-8"))["project"]
            folder_of[str(project["name"])] = path.parent
        except (OSError, ValueError, KeyError):
            continue
    return folder_of


def install_command(*requirements: str | Path, option: str = "") -> str:
    """Return the pip command that installs requirements: distributions with extras, or folders.

    - `requirements`: names of distributions with extras, such as "dovetail-tensor[onnx]", or paths
      of folders.
    - `option`: an option of pip before them, such as "-e".

    dovetail's own distributions come from the source of this dovetail, which may be a checkout. A
    requirement with extras keeps its name: the distribution is installed, and pip adds the extras.

    >>> from dovetail.extend import install_command
    >>> install_command("dovetail-tensor[onnx]")
    'pip install "dovetail-tensor[onnx]"'
    """
    root = find_checkout()
    folder_of = {} if root is None else distribution_folders(root)
    words = [_quote_requirement(folder_of.get(str(r), r)) for r in requirements]
    return " ".join(filter(None, ("pip install", option, *words)))


def _quote_requirement(requirement: str | Path) -> str:
    """Return a requirement, quoted for a shell; a folder is relative if it is below this one."""
    import shlex

    if isinstance(requirement, str):
        return requirement if re.fullmatch(r"[\w.=-]+", requirement) else f'"{requirement}"'
    folder = requirement.absolute()
    text = folder.as_posix()
    if folder.is_relative_to(Path.cwd()):
        text = f"./{folder.relative_to(Path.cwd()).as_posix()}".removesuffix("/.")
    return f"-e {text}" if re.fullmatch(r"[\w./:-]+", text) else f"-e {shlex.quote(text)}"


def reinstall_command(distribution: str, option: str = "--upgrade") -> str:
    """Return a pip command for dovetail's own distributions, and a sentence for others.

    A command is given only for dovetail's own distributions: strangers may have registered the name
    of a private plugin.
    """
    if distribution in (CORE_DISTRIBUTION, *backend_distributions().values()):
        return install_command(distribution, option=option)
    return f"reinstall {distribution} from its source"
