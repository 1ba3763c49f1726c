"""A progress bar of the kit's cases, in place of pytest's dots on a terminal.

`cli` loads it there alone. The output of a case is captured, so the bar is drawn between cases, and
by no thread of its own.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any

import pytest
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

REDRAW_SECONDS_MIN = 0.1  # seconds between two drawings

Status = tuple[str, str, Any]  # category, letter, word


class Bar:
    """A bar with the number of cases that are done, and of those that have failed."""

    def __init__(self) -> None:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
        )
        self.progress = Progress(*columns, transient=True, auto_refresh=False)
        self.task, self.failed, self.last_drawn = (
            self.progress.add_task("cases", total=None),
            0,
            0.0,
        )

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Start the bar with the number of collected cases of this process as its total."""
        self._begin(len(session.items))

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        """Start the bar when a worker of pytest-xdist has collected; each collects all cases."""
        self._begin(len(ids))

    @pytest.hookimpl(wrapper=True)
    def pytest_report_teststatus(self) -> Generator[None, Status, Status]:
        """Keep pytest's category of a report, and print neither letter nor word for it."""
        category, _, _ = yield
        return category, "", ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count failed reports, and a case when its teardown has ended; redraw the bar."""
        self.failed += report.failed
        if report.when == "teardown":
            label = f"cases, [red]{self.failed} failed[/]" if self.failed else "cases"
            self.progress.update(self.task, advance=1, description=label)
            self._draw()

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """Stop the display, which erases the bar."""
        self.progress.stop()

    def _begin(self, cases: int) -> None:
        """Set the total, start the display and draw it; later draws are limited in rate."""
        self.progress.update(self.task, total=cases)
        self.progress.start()
        self._draw()

    def _draw(self) -> None:
        """Redraw the bar, but at most once in REDRAW_SECONDS_MIN."""
        now = time.monotonic()
        if now - self.last_drawn > REDRAW_SECONDS_MIN:
            self.last_drawn = now
            self.progress.refresh()


def pytest_configure(config: pytest.Config) -> None:
    """Register the bar, but in no worker of pytest-xdist."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Bar(), "dovetail-bar")
