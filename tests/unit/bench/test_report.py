"""The table that the bench prints, and the report that it writes."""

import json
from pathlib import Path

from bench.figure import Figure
from bench.machine import Machine
from bench.report import report, write_report

MACHINE = Machine("vm one/2", "A CPU", 2, 24.0, "6.1", "3.11.7", 0.1)
FIGURES = {
    "gap": [
        Figure("p50", 52.0, "ms", 60.0, baseline=13.0, beside="bare", note="best of 3"),
        Figure("p95", 70.0, "ms"),
    ],
    "stream": [Figure("claude", 250.0, "MB/s", 300.0, "at least")],
}


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
