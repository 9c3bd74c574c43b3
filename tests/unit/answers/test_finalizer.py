"""The finalizer's prompts, which request the answer once more."""

import json

import pytest

from septet.answers.ladder import AnswerError
from septet.answers.steps import finalizer_prompt, forms_of, read_step_answer, shape_of
from septet.contracts.names import Step

REASONS = ("The JSON cannot be used: it is cut off.", "The text {holds} %s.")


@pytest.mark.parametrize("step", Step)
@pytest.mark.parametrize("attempt", [1, 2])
def test_a_prompt_says_all_that_is_needed(step: Step, attempt: int) -> None:
    """Each prompt forbids edits, requests one object without wrapping, and names each reason."""
    prompt = finalizer_prompt(step, REASONS, attempt)
    for words in ("Do not edit files.", "xactly one JSON object", "o Markdown", "o prose", "o code fences"):
        assert words in prompt
    assert all(f"- {reason}\n" in prompt for reason in REASONS)
    assert step.value in prompt
    assert all(name in prompt for form in forms_of(step) for name in form["properties"])
    members = [member for form in forms_of(step) for member in form["properties"].values()]
    assert all(json.dumps(member["description"]) in prompt for member in members)


def test_inside_a_pipeline_the_solution_is_asked_for() -> None:
    """In a pipeline both prompts hold the solution's schema, and the second one its whole shape."""
    first, second = (finalizer_prompt(Step.BUILD_PLAN, REASONS, attempt, in_pipeline=True) for attempt in (1, 2))
    assert all('"predicted_files"' in prompt and "modification_points" in prompt for prompt in (first, second))
    assert '"depends_on": [<string>, ...], "estimated_minutes": <integer>' in second
    executed = finalizer_prompt(Step.IMPLEMENT_PLAN, REASONS, 2, in_pipeline=True)
    assert '"commit_hash": <string> or <null>' in executed


@pytest.mark.parametrize("step", Step)
@pytest.mark.parametrize("attempt", [1, 2])
def test_a_prompt_sent_back_is_no_answer(step: Step, attempt: int) -> None:
    """A repeated prompt, or the shape in it, is no answer."""
    echoes = [finalizer_prompt(step, REASONS, attempt), *(shape_of(form) for form in forms_of(step))]
    for echo in echoes:
        with pytest.raises(AnswerError):
            read_step_answer(step, echo)
