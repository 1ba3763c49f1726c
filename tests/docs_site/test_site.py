"""The documentation site: no warnings, no dead links, complete navigation, and no requests to
other hosts.

It is built in a copy that has an additional notebook and an additional page without a group.
"""

from __future__ import annotations

import json
import posixpath
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from places import TESTS
from site_building import build

pytest.importorskip("mkdocs")
pytest.importorskip("material")

ROOT = TESTS.parent
NOTEBOOK = {
    "cells": [
        {"cell_type": "markdown", "source": ["# A notebook\n\n", "See [memory](../memory.md)."]},
        {
            "cell_type": "code",
            "source": ["print('a')\n", "x[0](y.md)"],
            "outputs": [
                {"output_type": "stream", "text": ["\x1b[1mprinted\x1b[0m\n", "\n", "# here\n"]},
                {"output_type": "execute_result", "data": {"text/plain": ["a value"]}},
                {
                    "output_type": "display_data",
                    "data": {"text/html": ["<table>\n\n<tr><td>**cell**</td></tr></table>"]},
                },
                {"output_type": "display_data", "data": {"image/png": "iVBORw0KGgo=\n"}},
            ],
        },
    ]
}
PAGE = """# A page of no group

[A notebook](tutorials/zz.ipynb), [architecture](../ARCHITECTURE.md#invariants),
`[code](nowhere.md)`,
[a file that is no page](../setup.py), [the readme](../README.md).

```text
[code](nowhere.md)
```
"""


class PageContent(HTMLParser):
    """The anchors, links, loaded resources and navigation links of a page."""

    LOADS = frozenset({"script", "img", "iframe", "source", "video", "audio", "embed", "object"})
    RELATIONS = frozenset({"stylesheet", "icon", "preload", "preconnect", "dns-prefetch"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors = {""}
        self.links = list[str]()
        self.navigation = list[str]()
        self.loaded = list[str]()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        has = {name: value or "" for name, value in attrs}
        self.anchors |= {has[name] for name in ("id", "name") if name in has}
        if tag == "a" and "href" in has:
            self.links.append(has["href"])
            if {"md-nav__link", "md-tabs__link"} & {*has.get("class", "").split()}:
                self.navigation.append(has["href"])
        if tag in self.LOADS:
            self.loaded += [has[name] for name in ("src", "srcset", "data") if name in has]
        if tag == "link" and self.RELATIONS & {*has.get("rel", "").split()}:
            self.loaded.append(has["href"])
        self.loaded += re.findall(r"url\(['\"]?([^'\")]+)", has.get("style", ""))


Pages = dict[str, PageContent]


def read_pages(site: Path) -> Pages:
    """Return all pages of a site by their paths, without the 404 page, whose links are absolute."""
    found = {p.relative_to(site).as_posix(): p for p in site.rglob("*.html")}
    return {path: PageContent(p.read_text()) for path, p in found.items() if path != "404.html"}


def link_target(page: str, link: str) -> tuple[str, str]:
    """Return the file of the site, and the anchor, that a link of a page points to."""
    parts = urlsplit(link)
    folder = posixpath.dirname(page)
    path = posixpath.normpath(posixpath.join(folder, unquote(parts.path))) if parts.path else page
    if parts.path.endswith(("/", ".")) or path == ".":
        path = posixpath.normpath(posixpath.join(path, "index.html"))
    return path, unquote(parts.fragment)


def dead_links(site: Path, pages: Pages) -> list[str]:
    """Return the links and resources that point to nothing within the site."""
    found = []
    for page, seen in pages.items():
        for link in {*seen.links, *seen.loaded}:
            if re.match(r"[a-z]+:", link):
                continue
            path, anchor = link_target(page, link)
            there = anchor in pages[path].anchors if path in pages else (site / path).is_file()
            found += [] if there else [f"{page}: {link}"]
    return sorted(found)


def external_resources(site: Path, pages: Pages) -> list[str]:
    """Return the resources that pages and their style sheets load from other hosts."""
    loaded = [(page, link) for page, seen in pages.items() for link in seen.loaded]
    for sheet in site.rglob("*.css"):
        for link in re.findall(r"(?:url\(|@import\s+)['\"]?([^'\")\s;]+)", sheet.read_text()):
            loaded.append((sheet.name, link))
    return [f"{page}: {link}" for page, link in loaded if re.match(r"(?!data:)([a-z]+:|//)", link)]


def reachable_pages(pages: Pages) -> set[str]:
    """Return the pages that the navigation reaches from the first one."""
    found, left = {"index.html"}, ["index.html"]
    while left:
        page = left.pop()
        paths = {link_target(page, link)[0] for link in pages[page].navigation} & {*pages}
        left += sorted(paths - found)
        found |= paths
    return found


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the site's sources, with links to all other files and two additional
    pages.
    """
    tree = tmp_path_factory.mktemp("tree")
    for path in ROOT.iterdir():
        if path.name == "docs":
            shutil.copytree(path, tree / "docs")
        elif path.name == "tools":
            shutil.copytree(path, tree / "tools", ignore=shutil.ignore_patterns("__pycache__"))
        elif path.name not in {"build", ".git"}:
            (tree / path.name).symlink_to(path)
    (tree / "docs" / "tutorials").mkdir(exist_ok=True)
    (tree / "docs" / "tutorials" / "zz.ipynb").write_text(json.dumps(NOTEBOOK))
    (tree / "docs" / "of-no-group.md").write_text(PAGE)
    return tree


@pytest.fixture(scope="module")
def site(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    site = tmp_path_factory.mktemp("site")
    done = build(tree, site)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return site


@pytest.fixture(scope="module")
def pages(site: Path) -> Pages:
    return read_pages(site)


def test_links_point_to_existing_targets(site: Path, pages: Pages) -> None:
    assert sum(len(seen.links) for seen in pages.values()) > 1000
    assert dead_links(site, pages) == []


def test_no_page_loads_from_another_host(site: Path, pages: Pages) -> None:
    assert sum(len(seen.loaded) for seen in pages.values()) > 100
    assert external_resources(site, pages) == []


def test_navigation_reaches_every_page(tree: Path, pages: Pages) -> None:
    docs = tree / "docs"
    written = {p.relative_to(docs).with_suffix("") for p in docs.rglob("*.md")}
    written |= {p.relative_to(docs).with_suffix("") for p in docs.rglob("*.ipynb")}
    names = {p.parent if p.name in ("README", "index") else p for p in written}
    made = {(p / "index.html").as_posix() for p in names}
    beside = {"architecture", "changelog", "contributing", "licence", "security"}
    made |= {f"project/{name}/index.html" for name in beside}
    assert len(made) > 55 and made <= {*pages}
    assert made - reachable_pages(pages) == set()


def test_dead_links_and_external_resources_are_found(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "index.html").write_text(
        '<a class="md-nav__link" href="a/">a</a><a href="a/#there">1</a><a href="a/#gone">2</a>'
        '<a href="b/">3</a><a href="mailto:x">4</a><script src="https://elsewhere/x.js"></script>'
    )
    (tmp_path / "a" / "index.html").write_text('<p id="there"><a href="..">up</a>')
    (tmp_path / "c.html").write_text('<img src="//elsewhere/x.png"><img src="data:,">')
    (tmp_path / "x.css").write_text("a { background: url(https://elsewhere/y.png) }")
    pages = read_pages(tmp_path)
    assert dead_links(tmp_path, {p: s for p, s in pages.items() if p != "c.html"}) == [
        "index.html: a/#gone", "index.html: b/",
    ]  # fmt: skip
    assert len(external_resources(tmp_path, pages)) == 3
    assert reachable_pages(pages) == {"index.html", "a/index.html"}


def test_links_out_of_the_docs_folder_are_rewritten(pages: Pages, site: Path) -> None:
    links = pages["of-no-group/index.html"].links
    assert "../project/architecture/#invariants" in links and "../tutorials/zz/" in links
    assert not [link for link in links if "setup" in link or "nowhere" in link]
    text = (site / "of-no-group" / "index.html").read_text()
    assert "a file that is no page" in text and text.count("[code](nowhere.md)") == 2


def test_notebook_becomes_a_page(pages: Pages, site: Path) -> None:
    links = pages["tutorials/zz/index.html"].links
    assert "../../memory/" in links and "../zz.ipynb" in links
    assert (site / "tutorials" / "zz.ipynb").exists()
    text = (site / "tutorials" / "zz" / "index.html").read_text()
    assert "<table>\n\n<tr><td>**cell**</td></tr></table>" in text
    assert 'src="data:image/png;base64,iVBORw0KGgo="' in text
    assert text.count('class="language-text notebook-printed highlight"') == 2
    plain = re.sub(r"<[^>]+>", "", text)
    assert "printed\n\n# here\n" in plain and "a value" in plain and "x[0](y.md)" in plain
    assert "dovetail-output" not in text and "\x1b" not in text


def test_sessions_are_highlighted(site: Path) -> None:
    text = (site / "index.html").read_text()
    assert '<span class="gp">&gt;&gt;&gt; </span>' in text and 'class="go"' in text


def test_search_index_has_every_public_function(site: Path) -> None:
    index = json.loads((site / "search" / "search_index.json").read_text())
    places = {entry["location"] for entry in index["docs"]}
    assert {"reference/elementwise/#softmax", "reference/shapes/#permute_dims"} <= places
    assert len(places) > 1000


@pytest.mark.parametrize("wrong", ["[x](nowhere.md)", "[x](memory.md#nowhere)", "![x](no.svg)"])
def test_dead_link_fails_the_build(tree: Path, tmp_path: Path, wrong: str) -> None:
    small = tmp_path / "tree"
    shutil.copytree(tree / "tools", small / "tools")
    (small / "docs" / "reference").mkdir(parents=True)
    shutil.copy(ROOT / "mkdocs.yml", small)
    for name in ("index.md", "memory.md"):
        (small / "docs" / name).write_text("# A page\n")
    for name in ("ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"):
        (small / name).write_text("# A page\n")
    assert build(small, tmp_path / "right").returncode == 0
    (small / "docs" / "index.md").write_text(f"# A page\n\n{wrong}\n")
    assert build(small, tmp_path / "wrong").returncode != 0
