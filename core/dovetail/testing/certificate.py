"""The certificate of a run of the kit, as JSON.

It names the device and the versions, counts the cases, and has a digest of all results.
"""

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
from ..install_source import CORE_DISTRIBUTION

FLOATS_PROPERTY = "dovetail floats"  # of the report of the case that probes them
REPAIRS_PROPERTY = "dovetail repairs"  # of the report of the case that counts them
FAILING_OUTCOMES = ("failed", "error", "unexpected pass", "skipped")


@dataclass
class Certificate:
    """A collector of one outcome for each case."""

    device: DeviceInfo
    plugin: str
    gaps: Mapping[str, str]
    sample: int
    layout: str = ""  # the one under test; empty: the device's backend is
    dtype: str = ""  # the plugin's under test
    outcomes: dict[str, str] = field(default_factory=dict)
    failures: dict[str, tuple[str, str]] = field(default_factory=dict)  # how to see it, what it is
    comparisons: int = 0
    companion_launches: int = 0  # launches on the companion
    floats: Mapping[str, Any] = field(default_factory=dict)  # as measured, if that case ran
    repairs: Mapping[str, Any] = field(default_factory=dict)  # by operation, if that case ran
    collected_cases: int = 0  # cases of the kit
    unsupported_cases: int = 0  # of these, those that need a dtype which the device says it lacks
    unknown_gaps: list[str] = field(default_factory=list)  # declared, and no case has such a name
    status: int = 0  # pytest's exit status, once it is known
    started_at: float = field(default_factory=time.time)

    def record_outcome(
        self, case: str, outcome: str, reproduce: str = "", message: str = ""
    ) -> None:
        """Record the outcome of a case, unless a failing outcome is recorded already."""
        if self.outcomes.get(case, "passed") not in FAILING_OUTCOMES:
            self.outcomes[case] = outcome
            if outcome in FAILING_OUTCOMES:
                self.failures[case] = (reproduce, message)

    @property
    def counts(self) -> dict[str, int]:
        """Return the cases by outcome."""
        return dict(Counter(self.outcomes.values()))

    @property
    def levels(self) -> dict[str, dict[str, int]]:
        """Return the cases by outcome, for each level of the kit."""
        by_level: dict[str, Counter[str]] = {}
        for case, outcome in sorted(self.outcomes.items()):
            by_level.setdefault(case.partition(".")[0], Counter())[outcome] += 1
        return {level: dict(counts) for level, counts in by_level.items()}

    @property
    def is_complete(self) -> bool:
        """Return True if every case ran that the device has dtypes for."""
        return self.executed == self.collected_cases - self.unsupported_cases

    @property
    def conforms(self) -> bool:
        """Return True if cases ran, none failed or was skipped, all gaps exist, pytest gave 0."""
        return not (
            self.nonconformance or self.status or any(map(self.counts.get, FAILING_OUTCOMES))
        )

    @property
    def executed(self) -> int:
        """Return the number of cases that ran."""
        return sum(n for outcome, n in self.counts.items() if outcome != "skipped")

    @property
    def nonconformance(self) -> str:
        """Return the reason of a device that does not conform, other than failed cases, or ""."""
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
        """Return the SHA-256 of all cases and their outcomes, sorted by case."""
        lines = "".join(f"{case} {outcome}\n" for case, outcome in sorted(self.outcomes.items()))
        return hashlib.sha256(lines.encode()).hexdigest()

    def as_json(self) -> dict[str, Any]:
        """Return the certificate as plain data."""
        return {
            "device": {
                "type": self.device.type,
                "index": self.device.index,
                "name": self.device.name,
                "fingerprint": self.device.fingerprint,
                "details": dict(self.device.details),
            },
            **(
                {
                    "companion": {
                        "device": self.device.companion,
                        "launches": self.companion_launches,
                    }
                }
                if self.device.companion
                else {}
            ),
            **({"floats": dict(self.floats)} if self.floats else {}),
            **({"repaired": dict(self.repairs)} if self.repairs else {}),
            **({"layout": self.layout} if self.layout else {}),
            **({"dtype": self.dtype} if self.dtype else {}),
            "versions": {
                "dovetail": _installed_version(CORE_DISTRIBUTION),
                "interface": ".".join(map(str, INTERFACE)),
                "plugin": self.plugin,
                "python": platform.python_version(),
                "numpy": np.__version__,
                "platform": platform.platform(),
            },
            "kit": {"digest": kit_digest(), "commit": commit()},
            "conforms": self.conforms,
            "whole": self.is_complete,
            "sample": self.sample,
            "cases": self.executed,
            "comparisons": self.comparisons,
            "absent": self.unsupported_cases,
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
            "begun": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.started_at)),
            "seconds": round(time.time() - self.started_at, 1),
        }

    def write(self, path: str) -> None:
        """Write the certificate as JSON to `path`; replace a file there."""
        Path(path).write_text(json.dumps(self.as_json(), indent=2) + "\n", "utf-8")


def _installed_version(distribution: str) -> str:
    """Return the installed version of a distribution, or "not installed"."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "not installed"


def kit_digest() -> str:
    """Return the SHA-256 of the kit's own sources, which identifies the kit."""
    sources = [path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py"))]
    return hashlib.sha256(b"\0".join(sources)).hexdigest()


def commit() -> str:
    """Return the commit of the kit's working tree, with "+" if it was changed since.

    An installed package gives "", and so does a failure of git.
    """
    folder = Path(__file__).parent
    if not any(parent.joinpath(".git").exists() for parent in folder.parents):
        return ""
    asked = ("git", "-C", str(folder), "describe", "--always", "--abbrev=40", "--dirty=+")
    try:
        done = subprocess.run([*asked, "--exclude=*"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()
