"""Every view in a browser, narrow and wide, light and dark."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import dovetail as dt
import numpy as np
import pytest

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
# The elements of a notebook around its outputs; the page is measured once they are there.
AROUND = """<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport"
content="width=device-width, initial-scale=1"><title>views</title><style>
body {{ font-family: sans-serif; margin: 12px; color: {ink}; background: {ground};
color-scheme: {scheme} }}
h2 {{ font-size: 15px; margin: 18px 0 6px }}
</style></head><body>{views}<script>
addEventListener("load", () => {{
  const over = document.documentElement.scrollWidth - innerWidth;
  const low = [...document.querySelectorAll("svg text")].filter(t =>
    t.getBoundingClientRect().width && getComputedStyle(t).fill === "{bad}").length;
  const cut = document.documentElement.scrollHeight - innerHeight;
  const scripts = document.scripts.length;
  document.title = `over ${{over}} cut ${{cut}} unseen ${{low}} scripts ${{scripts}}`;
}});
</script></body></html>"""
SCHEMES = {
    "light": {"ink": "#111", "ground": "#fff", "scheme": "light", "bad": "none"},
    "dark": {"ink": "#e5e5e5", "ground": "#111", "scheme": "dark", "bad": "rgb(0, 0, 0)"},
}


def views() -> dict[str, Any]:
    """Return every kind of view by name."""
    rng = np.random.default_rng(0)
    x = dt.asarray(rng.normal(size=(128, 64)).astype("f4"))
    w = dt.asarray(rng.normal(size=(64, 64)).astype("f4")).requires_grad_()
    v = dt.asarray(rng.normal(size=64).astype("f4")).requires_grad_()

    def loss() -> dt.Tensor:
        return (dt.softmax(dt.relu(x @ w + 1) * v, axis=1) - 0.5).square().mean()

    dt.evaluate(loss())
    with dt.profile() as p:
        for _ in range(4):
            dt.evaluate(loss())
    y = loss()
    dt.draw_graph(y)
    y.backward()
    f = dt.jit(lambda t: dt.softmax(t @ t.T).sum(axis=0))
    for _ in range(3):
        f(x)
    image = dt.asarray(np.linspace(0, 1, 32 * 48 * 3, dtype="f4").reshape(32, 48, 3))
    odd = dt.asarray([1.0, np.nan, -np.inf, 1e-30])
    return {
        "explain": dt.explain(loss(), x.std(axis=0)),
        "explain of a captured function": dt.explain(f),
        "profile": p,
        "graph": dt.draw_graph(loss(), names={"x": x, "<script>w</script>": w, "v": v}),
        "tape": dt.draw_graph(loss(), gradient=True, names={"w": w, "v": v}),
        "devices": dt.devices(),
        "device": dt.device("reference"),
        "matrix with gradient": w,
        "image": image,
        "odd numbers": odd,
        "bfloat16": dt.asarray([1.5, 2.5]).to(dt.bfloat16),
        "complex": dt.asarray([1 + 2j, 3 - 4j]),
        "bool": dt.asarray([[True, False], [False, True]]),
        "empty": dt.zeros((0, 3)),
        "one number": dt.asarray(3.25),
        "huge": dt.arange(10**6).reshape(1000, 1000),
        "pending": x[:3, :3] * 2,
        "another device": dt.ones((2, 2), device="reference"),
        "sparse": dt.eye(30, device="reference").to_sparse(),
        "show": dt.show(dt.arange(12).reshape(3, 4).T),
    }


def page(scheme: str, shown: dict[str, Any]) -> str:
    inner = "".join(f"<h2>{name}</h2>{x._repr_html_()}" for name, x in shown.items())
    return AROUND.format(views=inner, **SCHEMES[scheme])


def test_no_view_has_a_script_or_loads_a_resource() -> None:
    for name, x in views().items():
        html = x._repr_html_()
        assert "<script" not in html, name
        for word in ("http://", "https://", "<link", "@import", "onload", "javascript:"):
            assert word not in html.replace("http://www.w3.org/2000/svg", ""), (name, word)


@pytest.mark.exhaustive
@pytest.mark.skipif(BROWSER is None, reason="there is no chromium here (apt install chromium)")
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", [500, 1200])
def test_browser_shows_every_view(tmp_path: Path, scheme: str, width: int) -> None:
    """Pictures go to the folder DOVETAIL_SCREENSHOTS, for inspection."""
    file = tmp_path / "views.html"
    file.write_text(page(scheme, views()), encoding="utf-8")
    picture = Path(os.environ.get("DOVETAIL_SCREENSHOTS", tmp_path)) / f"{scheme}-{width}.png"
    common = [
        str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
        f"--user-data-dir={tmp_path / 'profile'}", f"--window-size={width},9000",
    ]  # fmt: skip
    told = subprocess.run(
        [*common, "--dump-dom", file.as_uri()],
        capture_output=True, text=True, timeout=120, check=True,
    ).stdout  # fmt: skip
    head = told.partition("</title>")[0]
    assert head.endswith("<title>over 0 cut 0 unseen 0 scripts 1"), head[-2000:]
    subprocess.run(
        [*common, f"--screenshot={picture}", file.as_uri()],
        capture_output=True, timeout=120, check=True,
    )  # fmt: skip
    assert picture.stat().st_size > 50_000
