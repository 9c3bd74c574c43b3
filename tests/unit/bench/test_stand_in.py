"""The program that the bench starts in place of a real agent."""

import json
import subprocess
from pathlib import Path

import pytest

from bench.stage import AGENT
from septet.agents.clis.claude.adapter import SCRIPTED
from septet.agents.outcomes.outcome import ExitRecord
from septet.answers.steps import read_step_answer, request_schema_of
from septet.contracts.names import Step


@pytest.mark.parametrize("step", Step)
def test_the_stand_in_answers_each_step(step: Step, tmp_path: Path) -> None:
    """The program finds the step by its schema, and its answer meets the step's contract."""
    schema = json.dumps(request_schema_of(step), separators=(",", ":"))
    done = subprocess.run(
        [AGENT, "--json-schema", schema], cwd=tmp_path, input=b"x", capture_output=True, check=True
    )
    stream = SCRIPTED.dialect()
    stream.feed(done.stdout)
    outcome = stream.outcome(ExitRecord(cause="exited", exit_code=0), "")
    answer = read_step_answer(step, outcome.text, structured=outcome.structured)
    assert answer.parsed_by == "structured"
