"""The finalizer's prompts, which request the answer once more."""

import json

import pytest

from septet.answers.ladder import AnswerError
from septet.answers.steps import PIPELINE_FORMS, finalizer_prompt, forms_of, read_step_answer, shape_of
from septet.contracts.names import Step

REASONS = ("The JSON cannot be used: it is cut off.", "The text {holds} %s.")


@pytest.mark.parametrize(
    ("step", "in_pipeline"), [*((step, False) for step in Step), *((step, True) for step in PIPELINE_FORMS)]
)
@pytest.mark.parametrize("attempt", [1, 2])
def test_a_prompt_says_all_that_is_needed(step: Step, attempt: int, *, in_pipeline: bool) -> None:
    """Each prompt forbids edits, requests one object without wrapping, and names each reason."""
    prompt = finalizer_prompt(step, REASONS, attempt, in_pipeline=in_pipeline)
    forms = forms_of(step, in_pipeline=in_pipeline)
    for words in ("Do not edit files.", "xactly one JSON object", "o Markdown", "o prose", "o code fences"):
        assert words in prompt
    assert all(f"- {reason}\n" in prompt for reason in REASONS)
    assert step.value in prompt
    assert all(name in prompt for form in forms for name in form["properties"])
    members = [member for form in forms for member in form["properties"].values()]
    assert all(json.dumps(member["description"]) in prompt for member in members)


@pytest.mark.parametrize("step", Step)
def test_the_second_attempt_never_repeats_the_first(step: Step) -> None:
    """The second prompt differs from the first and shows the answer's shape."""
    first, second = (finalizer_prompt(step, REASONS, attempt) for attempt in (1, 2))
    assert first != second
    assert all(shape_of(form) in second and shape_of(form) not in first for form in forms_of(step))


@pytest.mark.parametrize("step", Step)
@pytest.mark.parametrize("attempt", [1, 2])
def test_a_prompt_sent_back_is_no_answer(step: Step, attempt: int) -> None:
    """A repeated prompt, or the shape in it, is no answer."""
    echoes = [finalizer_prompt(step, REASONS, attempt), *(shape_of(form) for form in forms_of(step))]
    for echo in echoes:
        with pytest.raises(AnswerError):
            read_step_answer(step, echo)
