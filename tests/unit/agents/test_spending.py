"""The usage of a turn, read from the folders of its runs."""

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from fakes.run_records import RECORD

from septet.agents.outcomes.outcome import ExitRecord, Outcome
from septet.agents.runs.folders import Run
from septet.agents.runs.usage import note_spent, spending_of
from septet.contracts.amounts import Spending
from septet.contracts.facts import Usage


def ended(folder: Path, usage: Usage, agent: str = "claude") -> Run:
    folder.mkdir()
    run = Run(folder, replace(RECORD, agent=agent))
    run.put("exit.json", msgspec.json.encode(ExitRecord(cause="exited", duration_seconds=2.0)))
    note_spent(run, Outcome(ended="ok", session_id="s", usage=usage))
    return run


def test_a_killed_run_has_no_price_beside_one_that_goes_on_in_its_session(tmp_path: Path) -> None:
    """The price of the resumed run is not the price of the killed run, which stays unpriced."""
    runs = [
        ended(tmp_path / "killed", Usage(input_tokens=1000)),
        ended(tmp_path / "resumed", Usage(output_tokens=5, cost_usd=0.5)),
    ]
    assert spending_of(runs) == Spending(usd=0.5, tokens=1005, seconds=4.0, unpriced=1)


@pytest.mark.parametrize(("agent", "unpriced"), [("copilot", 1), ("codex", 0), ("claude", 0)])
def test_an_agent_that_reports_nothing_at_all_has_no_price(tmp_path: Path, agent: str, unpriced: int) -> None:
    """A run of copilot without figures has no price; another agent's run without tokens costs nothing."""
    assert spending_of([ended(tmp_path / "run", Usage(), agent)]) == Spending(seconds=2.0, unpriced=unpriced)
