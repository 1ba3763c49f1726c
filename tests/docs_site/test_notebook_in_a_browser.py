"""The notebook views of tensors in a real browser.

`pytest -m exhaustive tests/docs_site --basetemp FOLDER` leaves its picture there for inspection.
"""

from __future__ import annotations

import io
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from installed import INSTALLED

if TYPE_CHECKING:
    from playwright.sync_api import Page

for package in ("nbclient", "nbformat", "ipykernel"):
    pytest.importorskip(package)
image_files = pytest.importorskip("PIL.Image")
playwright = pytest.importorskip("playwright.sync_api")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = [
    pytest.mark.exhaustive,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium here (apt install chromium)"),
    pytest.mark.skipif("cpu" not in INSTALLED, reason="a profile is of compiled kernels"),
]

RED, GREEN = (230, 20, 40), (10, 200, 90)  # the left and the right half of an image
CELLS = {
    "imports": "import dovetail as dt\nimport numpy as np",
    "tensor": "dt.asarray([[1.0, 2.5], [-3.25, 4.0]])",
    "image": f"""
pixels = np.zeros((3, 16, 24), np.uint8)
pixels[:, :, :12] = np.reshape({RED}, (3, 1, 1))
pixels[:, :, 12:] = np.reshape({GREEN}, (3, 1, 1))
dt.asarray(pixels)""",
    "sparse": "dt.eye(12, 12).to_sparse()",
    "explain": "x = dt.ones((256, 256)) * 2\ndt.explain((x + 1).sum())",
    "profile": "with dt.profile() as found:\n    (dt.ones(1000) * 3).sum().item()\nfound",
    "devices": "dt.devices()",
}


def executed_cells() -> dict[str, str]:
    """Return the HTML of each cell with output of a small notebook, run in a fresh kernel."""
    import nbformat
    from nbclient import NotebookClient

    form: Any = nbformat.v4
    book = form.new_notebook(cells=[form.new_code_cell(text) for text in CELLS.values()])
    done = NotebookClient(book, timeout=60, kernel_name="python3").execute()
    found = dict[str, str]()
    for name, cell in zip(CELLS, done.cells, strict=True):
        for output in cell.outputs:
            if "text/html" in output.get("data", {}):
                found[name] = output["data"]["text/html"]
    return found


@pytest.fixture(scope="module", params=["light", "dark"])
def page(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Open a page of the cells, each in a section of its own, as wide as a notebook."""
    ground = {"light": "background:#fff;color:#111", "dark": "background:#111;color:#eee"}
    sections = [f'<section id="{name}">{html}</section>' for name, html in executed_cells().items()]
    path = tmp_path_factory.mktemp(request.param) / "page.html"
    scheme = f'<meta charset="utf-8"><meta name="color-scheme" content="{request.param}">'
    style = f"<style>body{{{ground[request.param]}}}section{{margin:24px 0}}</style>"
    path.write_text("<!doctype html>" + scheme + style + "".join(sections), encoding="utf-8")
    with playwright.sync_playwright() as made:
        browser = made.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        size = {"width": 1000, "height": 800}
        opened = browser.new_page(viewport=size, color_scheme=request.param)
        opened.goto(path.as_uri())
        yield opened
        browser.close()


def screenshot(page: Page, name: str) -> np.ndarray[Any, Any]:
    """Return the pixels of one section: (height, width, 3) bytes."""
    shot = page.locator(f"#{name}").screenshot()
    return np.asarray(image_files.open(io.BytesIO(shot)).convert("RGB"))


def count_pixels(pixels: np.ndarray[Any, Any], colour: tuple[int, int, int]) -> int:
    return int((np.abs(pixels.astype(int) - colour).max(axis=-1) <= 2).sum())


@pytest.mark.filterwarnings("default")  # part of the notebook's own page, not of dovetail
def test_notebook_page_shows_every_cell(page: Page, tmp_path: Path) -> None:
    picture = tmp_path / "notebook.png"
    page.screenshot(path=picture, full_page=True)
    height, width = np.asarray(image_files.open(picture)).shape[:2]
    assert width == 1000 and height > 800
    assert page.evaluate("document.documentElement.scrollWidth") <= 1000
    assert page.evaluate("[...document.querySelectorAll('section')].map(s => s.id)") == [
        name for name in CELLS if name != "imports"
    ]
    assert page.locator("script").count() == 0

    cells = page.eval_on_selector_all("#tensor td", "found => found.map(c => c.innerText.trim())")
    assert cells == ["1.", "2.5", "-3.25", "4."]
    (drawn,) = page.eval_on_selector_all(
        "#image img", "found => found.map(i => [i.naturalWidth, i.naturalHeight, i.width])"
    )
    assert drawn[:2] == [24, 16] and drawn[2] >= 24
    for name, words in [
        ("sparse", "sparse_coo"), ("explain", "launch"), ("profile", "launch"), ("devices", "cpu"),
    ]:  # fmt: skip
        assert words in page.inner_text(f"#{name}"), name
    cut = "d => [...d.querySelectorAll('*')].filter(e => e.scrollWidth > e.clientWidth + 1).length"
    assert page.eval_on_selector("#devices", cut) == 0


@pytest.mark.filterwarnings("default")
def test_image_shows_its_colors_on_both_halves(page: Page) -> None:
    pixels = screenshot(page, "image")
    places = {
        colour: np.argwhere(np.abs(pixels.astype(int) - colour).max(axis=-1) <= 2)
        for colour in (RED, GREEN)
    }
    assert all(len(at) > 1000 for at in places.values()), {c: len(a) for c, a in places.items()}
    assert places[RED][:, 1].max() < places[GREEN][:, 1].min(), "red is left of green"
    assert count_pixels(screenshot(page, "tensor"), RED) == 0


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("name", [name for name in CELLS if name != "imports"])
def test_text_has_contrast_to_its_background(page: Page, name: str) -> None:
    """In every color scheme, many pixels differ much from the background."""
    pixels = screenshot(page, name).astype(int)
    ground = pixels[0, 0]
    assert (np.abs(pixels - ground).max(axis=-1) > 120).sum() > 100
