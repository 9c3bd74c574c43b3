"""The answer after printed reasoning, by the marks of each family of models, and texts about the marks."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from septet.answers.ladder import AnswerError
from septet.answers.reasoning import answer_part
from septet.answers.steps import read_step_answer
from septet.contracts.names import Step

ANSWER = {"success": True, "summary": "add adds", "key_changes_made": ["add"], "key_learnings": []}
DRAFT = json.dumps(ANSWER | {"success": False, "summary": "not yet"})
JSON = json.dumps(ANSWER)
SPOKEN = json.dumps(
    ANSWER | {"summary": "The parser drops </think> and <think>.", "key_changes_made": ["</think>"]}
)
HARMONY = (
    f"<|channel|>analysis<|message|>A draft: {DRAFT}<|end|><|start|>assistant<|channel|>final <|constrain|>json"
    f"<|message|>{JSON}<|return|>"
)

READ = [
    ("think", f"<think>\n{DRAFT}\n</think>\n\n{JSON}"),
    ("only the closing mark", f"The user wants JSON: {DRAFT}\n</think>\n\n{JSON}"),
    ("only the closing mark, in a line", f"So it is done: {DRAFT}.</think> {JSON}"),
    ("two thoughts", f"<think>a</think>\nOn it.\n<think>{DRAFT}</think>\n{JSON}"),
    ("thinking", f"<thinking>\n{DRAFT}\n</thinking>\n```json\n{JSON}\n```"),
    ("a name before it", f"<seed:think>{DRAFT}</seed:think>{JSON}"),
    ("brackets", f"[THINK]{DRAFT}[/THINK]{JSON}"),
    ("special tokens", f"◁think▷{DRAFT}◁/think▷{JSON}"),
    ("begin of thought", f"<|begin_of_thought|>{DRAFT}<|end_of_thought|>{JSON}"),
    ("start thinking", f"<|START_THINKING|>{DRAFT}<|END_THINKING|>{JSON}"),
    ("a scratchpad", f"<REASONING_SCRATCHPAD>\n{DRAFT}\n</REASONING_SCRATCHPAD>\n{JSON}"),
    ("inner prefix", f"<|inner_prefix|>{DRAFT}<|inner_suffix|>{JSON}"),
    ("gemma", f"<|channel>thought\nA draft: {DRAFT}\n<channel|>{JSON}<turn|>"),
    ("gemma without its opening mark", f"A draft: {DRAFT}\n<channel|>{JSON}"),
    ("harmony", HARMONY),
    ("harmony without its tokens", f"analysisWe draft {DRAFT} and thenassistantfinal{JSON}"),
    ("a thought that breaks JSON", f'<think>{{"success": tr\n</think>\n{JSON}'),
    ("a thought after the answer that is cut off", f"{JSON}\n<think>\nIs it {DRAFT}?"),
    ("prose that speaks of the mark", f"The `</think>` is dropped now.\n\n{JSON}\nNo `<think>` is left."),
    ("prose that names the mark", f"I handle <think> in the parser.\n\n{JSON}"),
]


@pytest.mark.parametrize("text", [text for _, text in READ], ids=[name for name, _ in READ])
def test_the_answer_behind_the_reasoning_is_read(text: str) -> None:
    """A draft inside the marks is neither the answer nor a conflict."""
    answer = read_step_answer(Step.IMPLEMENT_PLAN, text)
    assert (answer.value.result_text, getattr(answer.value, "success", None)) == ("add adds", True)


@pytest.mark.parametrize(
    "text",
    [SPOKEN, f"```json\n{SPOKEN}\n```", f"Done: {SPOKEN} I hope that helps.", f"<think>x</think>{SPOKEN}"],
)
def test_a_mark_inside_of_the_answers_strings_is_text(text: str) -> None:
    """A mark in a string of the answer is text, as in a report on a parser of marks."""
    assert (
        read_step_answer(Step.IMPLEMENT_PLAN, text).value.result_text == "The parser drops </think> and <think>."
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f"<think>\nA draft: {JSON}", "Only reasoning was printed"),
        (f"<think>{JSON}</think>", "Only reasoning was printed"),
        (f"<|channel>thought A draft: {JSON}", "Only reasoning was printed"),
        (f"<think>{JSON}</think>\nAll done.", "holds no JSON object"),
        (f"<|channel|>analysis<|message|>{JSON}", "Only reasoning was printed"),
        (f"<|channel|>commentary to=functions.shell<|message|>{JSON}<|call|>", "Only reasoning was printed"),
    ],
)
def test_what_stands_inside_the_marks_is_never_the_answer(text: str, reason: str) -> None:
    """JSON inside the marks is no answer, so a model that was cut off in its reasoning has not answered."""
    with pytest.raises(AnswerError, match=reason):
        read_step_answer(Step.IMPLEMENT_PLAN, text)


@pytest.mark.parametrize(
    ("step", "text", "result"),
    [
        (Step.CLASSIFY_ISSUE, "<think>\nIt may be a /feature.\n</think>\n\n/bug", "/bug"),
        (Step.CLASSIFY_ISSUE, "It is a feature, no: a bug.</think>/bug", "/bug"),
        (Step.BUILD_PLAN, "<think>specs/other.md?</think>\nspecs/plan.md", "specs/plan.md"),
        (Step.CREATE_COMMIT, "<think>fix: x</think>\n\nfix: drop <think> marks", "fix: drop <think> marks"),
        (Step.CREATE_COMMIT, "fix: drop a lone </think>", "fix: drop a lone </think>"),
        (
            Step.CREATE_COMMIT,
            "Remove </think> from answers\n\nRemove it everywhere.",
            "Remove </think> from answers\n\nRemove it everywhere.",
        ),
    ],
)
def test_a_plain_form_is_read_behind_the_reasoning_and_may_speak_of_marks(
    step: Step, text: str, result: str
) -> None:
    """A mark inside a plain answer's sentence is a part of the answer."""
    assert read_step_answer(step, text).value.result_text == result


@given(
    st.lists(st.sampled_from(["<think>", "</think>", '{"a": "', '"}', "x", "\n", "`", "<|channel|>", "[THINK]"]))
)
def test_what_is_returned_is_a_part_of_the_text(parts: list[str]) -> None:
    """The returned part is a part of the text, for any order of marks."""
    assert answer_part("".join(parts)) in "".join(parts)


@pytest.mark.parametrize(
    "text",
    [
        "fix: greet<|im_end|>",
        "fix: greet</s>",
        "<|START_THINKING|>hm<|END_THINKING|><|START_RESPONSE|>fix: greet<|END_RESPONSE|>",
        "<think>hm</think><|begin_of_box|>fix: greet<|end_of_box|>",
        "<|start_header_id|>assistant<|end_header_id|>\n\nfix: greet<|eot_id|>",
        "<|channel>thought\nfix: wrong<channel|>fix: greet<turn|><eos>",
    ],
)
def test_tokens_around_a_message_are_no_part_of_a_plain_answer(text: str) -> None:
    """Tokens that a server passes on around a message are left out of the answer."""
    assert read_step_answer(Step.CREATE_COMMIT, text).value.result_text == "fix: greet"


@pytest.mark.parametrize("text", ["fix: strip a trailing <|im_end|>", "fix: strip </s>", "fix: read `<eos>`"])
def test_a_token_that_a_message_speaks_of_stays(text: str) -> None:
    """A token after a space or in quotes is part of the message; a final token follows the last word directly."""
    assert read_step_answer(Step.CREATE_COMMIT, text).value.result_text == text
