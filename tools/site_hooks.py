"""Hooks of `mkdocs` that adapt the pages of the repository to the site.

They write the reference, build the navigation, add pages from outside docs/, rewrite links that
lead out of docs/, and render notebooks with their outputs. The pages themselves are written for a
forge, and the hooks change them at build time.
"""

from __future__ import annotations

import html
import json
import posixpath
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
DOCS = "docs"

# The navigation. Names without a page are skipped; pages without a group go into "More".
GROUPS: dict[str, str] = {
    "Start": "index install start from-numpy from-pytorch from-jax from-mlx from-cupy "
    "from-tinygrad faq command-line",
    "Tutorials": "tutorials/*",
    "Guides": "views-and-writes when-work-runs jit jit-in-detail performance slow-program "
    "on-a-gpu seeing numerics accuracy memory storage errors environment",
    "Arrays": "numpy sparse",
    "Gradients": "which-gradient autograd transforms",
    "Networks": "layers training checkpoints mixed-precision parallel parallel-training "
    "sharded-tensors weights-from-hugging-face attention convolutions distributions onnx",
    "Kernels": "kernels kernels-of-loops extensions adding-an-op adding-a-fusion-rule",
    "Devices": "writing-a-backend kernel-ir conformance writing-a-layout adding-a-dtype "
    "writing-an-allocator writing-a-transport",
    "Reference": "reference/*",
    "Internals": "dovetail-in-300-lines project/architecture glossary internals/*",
    "Decisions": "decisions/*",
    "Project": "benchmarks measurements/* gpu-runs/* project/* versions releasing",
}
# Pages outside docs/, where forges look for them.
PROJECT = {
    "ARCHITECTURE.md": "architecture",
    "CONTRIBUTING.md": "contributing",
    "CHANGELOG.md": "changelog",
    "SECURITY.md": "security",
    "CODE_OF_CONDUCT.md": "conduct",
    "LICENSE": "licence",
}
LINK_TARGETS = {"README.md": f"{DOCS}/index.md"}  # replaces the targets of links

# Pages that repeat names: a search must list the plain function first.
SECONDARY_PAGES = (
    "tensor", "nn", "functional", "nn-utils", "optim", "data", "distributions", "sparse", "onnx",
    "checkpoints", "torch",
)  # fmt: skip
BOOSTS = {
    **{f"reference/{name}.md": 2 for name in SECONDARY_PAGES},
    "reference/extend.md": 0.3, "reference/other-names.md": 0.3, "reference/jax.md": 0.3,
    "benchmarks.md": 0.3, "project/changelog.md": 0.3,
}  # fmt: skip

FENCE = re.compile(r"^(?P<mark>```+|~~~+)[^\n]*\n.*?^(?P=mark)[ \t]*$", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"(?P<ticks>`+)(?!`).+?(?<!`)(?P=ticks)(?!`)", re.DOTALL)
LINK = re.compile(r"(?P<image>!?)\[(?P<text>(?:[^\[\]]|\[[^\]]*\])*)\]\((?P<target>[^()\s]+)\)")
SESSION = re.compile(r"^```python\n(?=>>>)", re.MULTILINE)
ESCAPES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
CELL = re.compile(r"<td(?P<style>[^>]*)>(?P<text>.*?)</td>", re.DOTALL)
SHORT_CELL_CHARACTERS_MAX, LONG_CELL_CHARACTERS_MIN = 22, 60  # of the text
ALL_PAGES = "[All pages](README.md)\n\n"
OUTPUT_PLACEHOLDER = "dovetail-output-{}"  # replaced by HTML after rendering

_outputs: dict[str, list[str]] = {}  # the HTML outputs by page of a notebook


# --- the navigation


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Write the reference, and set the navigation: all pages, each in its group."""
    if Path(config.docs_dir) == ROOT / DOCS and (ROOT / "core").is_dir():
        subprocess.run([sys.executable, ROOT / "tools" / "reference.py"], check=True)
    config.nav = navigation(pages(Path(config.docs_dir)))
    return config


def pages(docs: Path) -> list[str]:
    """Return the paths of all pages of the site, without suffix."""
    found = {p.relative_to(docs).with_suffix("").as_posix() for p in docs.rglob("*.md")}
    found |= {p.relative_to(docs).with_suffix("").as_posix() for p in notebooks(docs)}
    return sorted(found) + [f"project/{name}" for path, name in PROJECT.items() if _is_file(path)]


def navigation(pages: Iterable[str]) -> list[dict[str, list[str]]]:
    """Return the groups with their pages; pages without a group form the last one."""
    remaining = list(pages)
    groups = []
    for group, names in {**GROUPS, "More": "*"}.items():
        chosen = [path for name in names.split() for path in _matching_pages(name, remaining)]
        remaining = [path for path in remaining if path not in chosen]
        if chosen:
            groups.append({group: [f"{path}.md" for path in chosen]})
    return groups


def _matching_pages(name: str, there: list[str]) -> list[str]:
    folder, star, _ = name.partition("*")
    found = [path for path in there if path.startswith(folder)] if star else [name]
    return sorted((p for p in found if p in there), key=_page_sort_key)


def _page_sort_key(path: str) -> tuple[bool, int, str]:
    """Return the sort key of a page in its folder: README first, then the order of its links."""
    folder, _, name = path.rpartition("/")
    index = ROOT / DOCS / folder / "README.md"
    linked = (
        re.findall(r"\]\(([\w-]+)\.(?:md|ipynb)\)", index.read_text())
        if folder and index.exists()
        else []
    )
    place = linked.index(name) if name in linked else len(linked)
    return name not in ("README", "index"), place if folder != "project" else 0, path


# --- the files


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages outside docs/, and a page for each notebook beside its download."""
    for path, name in PROJECT.items():
        if _is_file(path):
            text = (ROOT / path).read_text()
            text = f"# Licence\n\n```text\n{text}```\n" if path == "LICENSE" else text
            files.append(File.generated(config, f"project/{name}.md", content=text))
    docs = Path(config.docs_dir)
    for notebook in notebooks(docs):
        uri = notebook.relative_to(docs).with_suffix(".md").as_posix()
        if files.get_file_from_path(uri) is None:
            text, _outputs[uri] = notebook_markdown(json.loads(notebook.read_text()), notebook.name)
            files.append(File.generated(config, uri, content=text))
    return files


def notebooks(docs: Path) -> list[Path]:
    """Return the notebooks under a folder."""
    return sorted(p for p in docs.rglob("*.ipynb") if ".ipynb_checkpoints" not in p.parts)


def _is_file(path: str) -> bool:
    return (ROOT / path).is_file()


# --- the texts


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rewrite links, mark interactive sessions, and set the rank of the page in searches."""
    uri = page.file.src_uri
    page.meta.setdefault(
        "search", {"boost": BOOSTS.get(uri, 4 if uri.startswith("reference/") else 1)}
    )
    text = markdown.replace(ALL_PAGES, "", 1)  # the site has a navigation
    text = outside_code(text, lambda part: LINK.sub(lambda m: rewrite_link(m, uri), part))
    return SESSION.sub("```pycon\n", text)


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Replace the placeholders by the HTML outputs of a notebook, and mark table cells."""
    html = CELL.sub(_mark_cell, html)
    for number, output in enumerate(_outputs.get(page.file.src_uri, [])):
        box = f'<div class="notebook-output">{output}</div>'
        html = html.replace(f"<p>{OUTPUT_PLACEHOLDER.format(number)}</p>", box)
    return html


def _mark_cell(cell: re.Match[str]) -> str:
    """Return a table cell marked as short or long for the style sheet.

    Short cells are not broken. Long cells have a minimum width, also on phones, where the table
    scrolls.
    """
    size = len(html.unescape(re.sub("<[^>]*>", "", cell["text"])))
    mark = (
        " data-short"
        if 0 < size <= SHORT_CELL_CHARACTERS_MAX
        else " data-long"
        if size > LONG_CELL_CHARACTERS_MIN
        else ""
    )
    return f"<td{cell['style']}{mark}>{cell['text']}</td>"


def outside_code(text: str, change: Callable[[str], str]) -> str:
    """Return a text with `change` applied to the parts outside of code blocks and spans."""
    return substitute_between(
        FENCE, text, lambda prose: substitute_between(LINK_OR_SPAN, prose, str, change)
    )


def substitute_between(
    code: re.Pattern[str], text: str, change: Callable[[str], str],
    change_link: Callable[[str], str] | None = None,
) -> str:  # fmt: skip
    """Apply `change` to the text between matches, and `change_link` to matches of links."""
    made, at = [], 0
    for match in code.finditer(text):
        made.append(change(text[at : match.start()]))
        is_link = change_link is not None and match["link"] is not None
        made.append(change_link(match[0]) if change_link is not None and is_link else match[0])
        at = match.end()
    return "".join([*made, change(text[at:])])


LINK_OR_SPAN = re.compile(f"(?P<link>{LINK.pattern})|{SPAN.pattern}", re.DOTALL)


def rewrite_link(link: re.Match[str], uri: str) -> str:
    """Return a link with its target on the site, or its text if the site lacks the file."""
    target, hash_, anchor = link["target"].partition("#")
    if not target or re.match(r"[a-z]+:|//", target):
        return link[0]
    here = posixpath.dirname(source(uri))
    path = posixpath.normpath(posixpath.join(here, target))
    there = site_path(LINK_TARGETS.get(path, path))
    if there is None:
        return link["text"] if (ROOT / path).exists() else link[0]  # mkdocs reports a missing file
    relative_path = posixpath.relpath(there, posixpath.dirname(uri) or ".")
    return f"{link['image']}[{link['text']}]({relative_path}{hash_}{anchor})"


def source(uri: str) -> str:
    """Return the path in the repository of a page of the site."""
    for path, name in PROJECT.items():
        if uri == f"project/{name}.md":
            return path
    return f"{DOCS}/{uri}"


def site_path(path: str) -> str | None:
    """Return the path on the site of a file of the repository, or None."""
    if path in PROJECT and _is_file(path):
        return f"project/{PROJECT[path]}.md"
    inside, (folder, _, rest) = (ROOT / path).is_file(), path.partition("/")
    if folder != DOCS or not inside:
        return None
    return re.sub(r"\.ipynb$", ".md", rest)


# --- notebooks


def notebook_markdown(notebook: Mapping[str, Any], name: str) -> tuple[str, list[str]]:
    """Return a notebook as Markdown with placeholders, and the HTML outputs for these."""
    parts, shown = list[str](), list[str]()
    for cell in notebook["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(text)
        elif cell["cell_type"] == "code" and text.strip():
            parts.append(f"````python\n{text}\n````")
            for output in cell.get("outputs", []):
                parts += _output(output, shown)
    shown.append(f'<a href="../{name}" download>This page as a notebook</a>')
    parts.append(OUTPUT_PLACEHOLDER.format(len(shown) - 1))
    return "\n\n".join(parts) + "\n", shown


def _output(output: Mapping[str, Any], shown: list[str]) -> list[str]:
    """Return the Markdown of an output: a picture or HTML if there is one, else plain text."""
    kinds = output.get("data", {})
    if output["output_type"] == "stream":
        return [_fence_output("".join(output["text"]))]
    if output["output_type"] == "error":
        return [_fence_output("\n".join(output["traceback"]))]
    for kind in ("image/svg+xml", "text/html", "image/png", "image/jpeg"):
        if kind in kinds:
            value = "".join(kinds[kind])
            if kind in ("image/png", "image/jpeg"):
                said = html.escape("".join(kinds.get("text/plain", "")), quote=True)
                value = f'<img src="data:{kind};base64,{value.strip()}" alt="{said}">'
            shown.append(value)
            return [OUTPUT_PLACEHOLDER.format(len(shown) - 1)]
    if "text/markdown" in kinds:
        return ["".join(kinds["text/markdown"])]
    return [_fence_output("".join(kinds["text/plain"]))] if "text/plain" in kinds else []


def _fence_output(text: str) -> str:
    return f"````{{ .text .notebook-printed }}\n{ESCAPES.sub('', text).rstrip()}\n````"
