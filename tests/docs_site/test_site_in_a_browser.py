"""The site in a real browser, as wide as a desktop and as a phone.

`pytest -m exhaustive tests/docs_site --basetemp FOLDER` leaves its pictures there for inspection.
"""

from __future__ import annotations

import functools
import http.server
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from places import TESTS
from site_building import build

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytest.importorskip("mkdocs")
pytest.importorskip("material")
playwright = pytest.importorskip("playwright.sync_api")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = [
    pytest.mark.exhaustive,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium here (apt install chromium)"),
]
WIDTHS = {"desktop": 1280, "phone": 390}
LOOKED_AT = ("", "writing-a-backend/", "reference/elementwise/", "benchmarks/")


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    """A file server without log output."""

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    site = tmp_path_factory.mktemp("site")
    done = build(TESTS.parent, site)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return site


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    handler = functools.partial(QuietHandler, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with playwright.sync_playwright() as made:
        browser = made.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


class Window:
    """A browser window, and the errors in it."""

    def __init__(self, browser: Browser, address: str, width: int, scheme: str = "light") -> None:
        size = {"width": width, "height": 900 if width > 600 else 844}
        self.address = address
        self.page: Page = browser.new_page(viewport=size, color_scheme=scheme)
        self.strange = list[str]()
        self.page.on("request", lambda request: self._asked(request.url))
        self.page.on("pageerror", lambda error: self.strange.append(str(error)))

    def _asked(self, url: str) -> None:
        if not url.startswith((self.address, "data:", "blob:")):
            self.strange.append(url)

    def open(self, path: str) -> None:
        self.page.goto(self.address + path, wait_until="load")

    def over(self) -> int:
        """Return by how much the page is wider than the window."""
        said = self.page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert isinstance(said, int)
        return said

    def search(self, text: str) -> list[str]:
        """Return the links that a search shows, best first."""
        self.open("")
        narrow = self.page.viewport_size["width"] < 600
        self.page.click("label[for=__search] >> nth=0" if narrow else ".md-search__input")
        self.page.wait_for_function("document.activeElement.matches('.md-search__input')")
        self.page.keyboard.type(text, delay=30)
        self.page.wait_for_selector(".md-search-result__link")
        self.page.wait_for_timeout(500)  # results appear one by one
        found = "links => links.map(link => link.getAttribute('href'))"
        return list(self.page.eval_on_selector_all(".md-search-result__link", found))


def pages(site: Path) -> list[str]:
    found = [p.parent.relative_to(site).as_posix() for p in site.rglob("index.html")]
    return sorted("" if path == "." else f"{path}/" for path in found)


@pytest.mark.parametrize("kind", WIDTHS)
def test_no_page_is_wider_than_its_window(
    browser: Browser, address: str, site: Path, kind: str
) -> None:
    window = Window(browser, address, WIDTHS[kind])
    assert len(pages(site)) > 55
    too_wide = {}
    for path in pages(site):
        window.open(path)
        if window.over() > 0:
            too_wide[path] = window.over()
    assert too_wide == {} and window.strange == []


@pytest.mark.parametrize("kind", WIDTHS)
def test_page_that_is_too_wide_is_found(browser: Browser, address: str, kind: str) -> None:
    window = Window(browser, address, WIDTHS[kind])
    window.open("")
    window.page.evaluate(
        "document.querySelector('article').innerHTML += "
        '\'<div style="width: 3000px">-</div><img src="http://127.0.0.2:9/x.png">\''
    )
    window.page.wait_for_timeout(200)
    assert window.over() > 1000 and window.strange == ["http://127.0.0.2:9/x.png"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("kind", WIDTHS)
def test_pages_follow_the_color_scheme(
    browser: Browser, address: str, tmp_path: Path, kind: str, scheme: str
) -> None:
    """The screenshots are for inspection."""
    window = Window(browser, address, WIDTHS[kind], scheme)
    for path in LOOKED_AT:
        window.open(path)
        name = path.strip("/").replace("/", "-") or "front"
        picture = tmp_path / f"{name}-{kind}-{scheme}.png"
        window.page.screenshot(path=picture)
        assert picture.stat().st_size > 20_000, "nothing is drawn"
    window.search("softmax")
    window.page.screenshot(path=tmp_path / f"search-{kind}-{scheme}.png")
    ground = window.page.evaluate("getComputedStyle(document.body).backgroundColor")
    red = int(ground.partition("(")[2].partition(",")[0])
    assert red > 200 if scheme == "light" else red < 60


@pytest.mark.parametrize("kind", WIDTHS)
def test_search_shows_the_function_first(browser: Browser, address: str, kind: str) -> None:
    window = Window(browser, address, WIDTHS[kind])
    for name, page in [("softmax", "elementwise"), ("permute_dims", "shapes"), ("svd", "linalg")]:
        found = window.search(name)
        # The best section of a page comes after the page itself.
        assert f"reference/{page}/" in found[0], (name, found[:4])
        assert any(link.rpartition("#")[2].endswith(name) for link in found[:4]), (name, found[:4])
    assert window.strange == []


def test_session_is_copied_without_prompts(browser: Browser, address: str) -> None:
    window = Window(browser, address, 1280)
    window.open("reference/elementwise/")
    copied = (
        "(() => { const code = document.querySelector('.language-pycon code');"
        "code.setAttribute('data-md-copying', ''); return code.innerText; })()"
    )
    text = window.page.evaluate(copied)
    assert text.startswith("import dovetail as dt\n") and ">>>" not in text
    assert len(text.strip().splitlines()) == text.count("dt."), "no line is a result"
