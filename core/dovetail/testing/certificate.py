"""What a run of the kit found, as JSON: which device, which versions, how many cases, and a
digest of all results."""

from __future__ import annotations

import hashlib
import importlib.metadata as metadata
import json
import platform
import subprocess
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..backend.interface import INTERFACE, DeviceInfo

BAD = ("failed", "error", "unexpected pass", "skipped")


@dataclass
class Certificate:
    """Collects one outcome for each case."""

    device: DeviceInfo
    plugin: str
    gaps: Mapping[str, str]
    sample: int
    layout: str = ""  # the one under test; empty: the device's backend is
    dtype: str = ""  # the plugin's under test
    outcomes: dict[str, str] = field(default_factory=dict)
    failures: dict[str, tuple[str, str]] = field(default_factory=dict)  # how to see it, what it is
    comparisons: int = 0
    elsewhere: int = 0  # launches that the companion has done
    offered: int = 0  # cases that the kit has
    absent: int = 0  # of these, those that need a dtype which the device says it lacks
    unknown_gaps: list[str] = field(default_factory=list)  # declared, and no case has such a name
    status: int = 0  # pytest's exit status, once it is known
    begun: float = field(default_factory=time.time)

    def note(self, case: str, outcome: str, reproduce: str = "", message: str = "") -> None:
        """Notes how a case ended; what went wrong first stays."""
        if self.outcomes.get(case, "passed") not in BAD:
            self.outcomes[case] = outcome
            if outcome in BAD:
                self.failures[case] = (reproduce, message)

    @property
    def counts(self) -> dict[str, int]:
        """Cases by outcome."""
        return dict(Counter(self.outcomes.values()))

    @property
    def levels(self) -> dict[str, dict[str, int]]:
        """For each level of the kit, cases by outcome."""
        found: dict[str, Counter[str]] = {}
        for case, outcome in sorted(self.outcomes.items()):
            found.setdefault(case.partition(".")[0], Counter())[outcome] += 1
        return {level: dict(counts) for level, counts in found.items()}

    @property
    def whole(self) -> bool:
        """Whether every case of the kit was run that the device has dtypes for."""
        return self.executed == self.offered - self.absent

    @property
    def conforms(self) -> bool:
        """Whether all that was run went well, to its end."""
        return not (self.complaint or self.status or any(map(self.counts.get, BAD)))

    @property
    def executed(self) -> int:
        """Cases that ran."""
        return sum(n for outcome, n in self.counts.items() if outcome != "skipped")

    @property
    def complaint(self) -> str:
        """Why the device does not conform, beyond failed cases; empty if there is nothing to
        say."""
        if self.unknown_gaps:
            names = ", ".join(self.unknown_gaps)
            return f"dovetail_conformance names cases that do not exist: {names}"
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
            **(
                {"companion": {"device": self.device.companion, "launches": self.elsewhere}}
                if self.device.companion
                else {}
            ),
            **({"layout": self.layout} if self.layout else {}),
            **({"dtype": self.dtype} if self.dtype else {}),
            "versions": {
                "dovetail": _version("dovetail"),
                "interface": ".".join(map(str, INTERFACE)),
                "plugin": self.plugin,
                "python": platform.python_version(),
                "numpy": np.__version__,
                "platform": platform.platform(),
            },
            "kit": {"digest": kit_digest(), "commit": commit()},
            "conforms": self.conforms,
            "whole": self.whole,
            "sample": self.sample,
            "cases": self.executed,
            "comparisons": self.comparisons,
            "absent": self.absent,
            "counts": self.counts,
            "levels": self.levels,
            "gaps": dict(self.gaps),
            "failures": [
                {
                    "case": case,
                    "outcome": self.outcomes[case],
                    "reproduce": reproduce,
                    "message": message,
                }
                for case, (reproduce, message) in sorted(self.failures.items())
            ],
            "digest": self.digest,
            "begun": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.begun)),
            "seconds": round(time.time() - self.begun, 1),
        }

    def write(self, path: str) -> None:
        """Writes it as JSON."""
        Path(path).write_text(json.dumps(self.as_json(), indent=2) + "\n", "utf-8")


def _version(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "not installed"


def kit_digest() -> str:
    """SHA-256 of the kit's own sources: which kit it was."""
    sources = [path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py"))]
    return hashlib.sha256(b"\0".join(sources)).hexdigest()


def commit() -> str:
    """The commit of the working tree that the kit is in, "+" if it was changed since; empty for an
    installed package."""
    folder = Path(__file__).parent
    if not any(parent.joinpath(".git").exists() for parent in folder.parents):
        return ""
    asked = ("git", "-C", str(folder), "describe", "--always", "--abbrev=40", "--dirty=+")
    try:
        done = subprocess.run([*asked, "--exclude=*"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()
