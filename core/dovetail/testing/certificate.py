"""What a run of the kit found, as JSON: which device, which versions, how many cases, and a
digest of all results."""

from __future__ import annotations

import hashlib
import importlib.metadata as metadata
import json
import platform
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..backend import INTERFACE, DeviceInfo

BAD = ("failed", "error", "unexpected pass", "skipped")


@dataclass
class Certificate:
    """Collects one outcome for each case."""

    device: DeviceInfo
    plugin: str
    gaps: Mapping[str, str]
    sample: int
    outcomes: dict[str, str] = field(default_factory=dict)
    comparisons: int = 0
    absent: int = 0  # cases that need a dtype which the device says it lacks

    def note(self, case: str, outcome: str) -> None:
        """Notes how a case ended; what went wrong first stays."""
        if self.outcomes.get(case, "passed") not in BAD:
            self.outcomes[case] = outcome

    @property
    def counts(self) -> dict[str, int]:
        """Cases by outcome."""
        return dict(Counter(self.outcomes.values()))

    @property
    def executed(self) -> int:
        """Cases that ran."""
        return sum(n for outcome, n in self.counts.items() if outcome != "skipped")

    @property
    def complaint(self) -> str:
        """Why the device does not conform, beyond failed cases; empty if there is nothing to
        say."""
        if self.executed == 0:
            return "no case was executed: that proves nothing"
        skipped = self.counts.get("skipped", 0)
        return (
            f"{skipped} cases were skipped: a case passes, fails or is a declared gap"
            if skipped
            else ""
        )

    @property
    def digest(self) -> str:
        """SHA-256 of all cases and their outcomes, in order."""
        lines = "".join(f"{case} {outcome}\n" for case, outcome in sorted(self.outcomes.items()))
        return hashlib.sha256(lines.encode()).hexdigest()

    def as_json(self) -> dict[str, Any]:
        """All of it as plain data."""
        return {
            "device": {
                "type": self.device.type,
                "index": self.device.index,
                "name": self.device.name,
                "fingerprint": self.device.fingerprint,
                "details": dict(self.device.details),
            },
            "versions": {
                "dovetail": _version("dovetail"),
                "interface": ".".join(map(str, INTERFACE)),
                "plugin": self.plugin,
                "python": platform.python_version(),
                "numpy": np.__version__,
                "platform": platform.platform(),
            },
            "conforms": not self.complaint and not any(self.counts.get(o) for o in BAD),
            "sample": self.sample,
            "cases": self.executed,
            "comparisons": self.comparisons,
            "absent": self.absent,
            "counts": self.counts,
            "gaps": dict(self.gaps),
            "failures": sorted(c for c, outcome in self.outcomes.items() if outcome in BAD),
            "digest": self.digest,
        }

    def write(self, path: str) -> None:
        """Writes it as JSON."""
        Path(path).write_text(json.dumps(self.as_json(), indent=2) + "\n")


def _version(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "not installed"
