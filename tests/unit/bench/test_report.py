"""The table that the bench prints, and the report that it writes."""

import io
import json
from pathlib import Path

from rich.console import Console

from bench.figure import Figure
from bench.machine import Machine, machine, version
from bench.report import report, write_figures, write_report
from bench.table import table

MACHINE = Machine("vm one/2", "A CPU", 2, 24.0, "6.1", "3.11.7", 0.1)
FIGURES = {
    "gap": [
        Figure("p50", 52.0, "ms", 60.0, baseline=13.0, beside="bare", note="best of 3"),
        Figure("p95", 70.0, "ms"),
    ],
    "stream": [Figure("claude", 250.0, "MB/s", 300.0, "at least")],
}


def test_the_table_tells_value_target_verdict_and_ratio() -> None:
    """Each figure's line holds its value, target, verdict, baseline and ratio."""
    out = Console(file=io.StringIO(), width=160)
    out.print(table(FIGURES, "A title"))
    lines = out.file.getvalue().splitlines()  # type: ignore[attr-defined]
    first = next(line for line in lines if "gap: p50" in line)
    assert all(part in first for part in ("52 ms", "≤ 60 ms", "reached", "13 ms: bare", "4.00"))
    last = next(line for line in lines if "stream: claude" in line)
    assert all(part in last for part in ("250 MB/s", "≥ 300 MB/s", "missed"))
    assert not any(word in line for line in lines if "gap: p95" in line for word in ("reached", "missed"))


def test_the_report_holds_what_a_figure_needs_to_be_believed(tmp_path: Path) -> None:
    """The JSON names machine, version, seed and pace, and each figure's target, baseline, ratio and verdict."""
    path = write_report(report(FIGURES, MACHINE, "0.1.0 abc", seed=7, quick=True), tmp_path / "results")
    content = json.loads(path.read_bytes())
    assert path.name == f"{content['measured_at'][:10]}-vm-one-2.json"
    assert (content["version"], content["seed"], content["quick"]) == ("0.1.0 abc", 7, True)
    assert content["machine"]["kernel"] == "6.1"
    assert content["figures"][0] == {
        "group": "gap",
        "name": "p50",
        "value": 52.0,
        "unit": "ms",
        "target": 60.0,
        "bound": "at most",
        "baseline": 13.0,
        "beside": "bare",
        "note": "best of 3",
        "ratio": 4.0,
        "passed": True,
    }
    assert [figure["passed"] for figure in content["figures"]] == [True, None, False]


def test_what_a_trial_found_stands_beside_its_machine_and_version(tmp_path: Path) -> None:
    """The file of a trial's figures names machine, version and time."""
    path = write_figures(tmp_path / "results" / "trial.json", {"seed": 7, "duplicates": 0}, MACHINE)
    content = json.loads(path.read_bytes())
    assert (content["seed"], content["duplicates"], content["machine"]["kernel"]) == (7, 0, "6.1")
    assert content["version"] == version()
    assert content["measured_at"].endswith("Z")


def test_this_machine_and_this_version_have_names() -> None:
    """The report names every machine, and the commit that was measured."""
    on = machine()
    assert on.cores >= 1
    assert all((on.name, on.cpu, on.kernel, on.python))
    assert version().count(" ") == 1
