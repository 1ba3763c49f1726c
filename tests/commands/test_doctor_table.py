"""`dovetail doctor`: its table is complete in a narrow terminal."""

from __future__ import annotations

import pytest
from dovetail.commands import doctor
from dovetail.commands.doctor import Finding

FINDINGS = [
    Finding("cpu", "open", "dovetail-cpu-llvm", "0.1.0", devices=["cpu:0 znver4"], kernel="fast"),
    Finding(
        "opencl", "unavailable", "dovetail-opencl", "0.1.0",
        devices=["opencl:0 pthread-sapphirerapids-Intel(R) Xeon(R)"],
        kernel="compiled in 2050.5 ms, ran in 51.01 ms",
    ),
    Finding("reference", "open", "dovetail-tensor", "0.1.0"),
]  # fmt: skip


def test_table_cuts_no_name_at_80_columns(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    doctor._print_findings(FINDINGS)
    text = capsys.readouterr().out
    table = text[text.index("type") : text.index("dovetail-tensor") + 80]
    assert "…" not in text
    assert max(map(len, table.splitlines())) <= 80
    for finding in FINDINGS:
        assert finding.distribution in table and finding.version in table
    assert "".join(FINDINGS[1].devices[0].split()) in "".join(column(table, "devices").split())


def column(table: str, heading: str) -> str:
    """Return the text of a column, whose cells start below its heading."""
    lines = table.splitlines()
    start = lines[0].index(heading)
    end = lines[0].index("kernel") if heading == "devices" else None
    return "\n".join(line[start:end] for line in lines)
