"""Final texts as agents write them, each with the rung that reads it; the other texts are refused."""

import json

import pytest

from septet.answers.ladder import Answer, AnswerError, read_answer
from septet.contracts.answers import ImplementPlanAnswer

DONE = {"success": True, "summary": "It's done", "key_changes_made": ["greet"], "key_learnings": []}
OTHER = DONE | {"success": False, "summary": "Nothing worked"}
JSON = json.dumps(DONE)
PRETTY = json.dumps(DONE, indent=2)
SCHEMA = json.dumps(ImplementPlanAnswer.model_json_schema())

READ = [
    ("carriage returns", PRETTY.replace("\n", "\r\n"), "json"),
    ("fence on one line", f"```json {JSON} ```", "fence"),
    ("fence that is not closed", f"Here:\n```json\n{PRETTY}", "fence"),
    ("fence after another fence", f"```python\nprint({{}})\n```\n\n```json\n{JSON}\n```", "fence"),
    ("array of one in a fence", f"```json\n[{JSON}]\n```", "fence"),
    ("other text in its fence", f"```\nResult: {JSON}\n```", "embedded"),
    ("prose with a quoted brace", f'It must start with `{{"` and end with `"}}`. {JSON}', "embedded"),
    ("one brace too many after it", f"{JSON}}}", "embedded"),
    ("the schema before it", f"The schema is {SCHEMA} and so: {JSON}", "embedded"),
    ("a shape before it", f'Shape: {{"success": true|false, "summary": "..."}}\n{JSON}', "embedded"),
    ("a cut-off try before it", f'{{"success": true, "summary": "It\n\nSorry, again: {JSON}', "embedded"),
    ("several slips in a fence", f"```json\n{DONE!r}\n```".replace("]}", "],}"), "mended"),
]

REFUSED = [
    ("prose", "All tests pass. The work is done."),
    ("array of two", f"[{JSON}, {JSON}]"),
    ("wrapper, cut off", f'{{"answer": {JSON}'),
    ("broken wrapper", f'{{"reason": because, "answer": {JSON}}}'),
    ("wrapper with a raw newline", f'{{"reason": "first\nsecond", "answer": {JSON}}}'),
    ("array of one in brackets, cut off", f"[ [\n[{JSON}"),
    ("encoded three times", json.dumps(json.dumps(JSON))),
    ("quote that is not escaped", JSON.replace("done", 'done "well"')),
    ("control character", JSON.replace("done", "d\x01one")),
    ("hash comment", PRETTY.replace(",\n", ", # note\n", 1)),
    ("escaped as in a shell", JSON.replace('"', '\\"')),
    ("ellipsis", JSON.replace('["greet"]', '["greet", ...]')),
    ("different answers, one to be mended", f"{JSON}\n{OTHER!r}"),
    ("an example before the answer", f"Such as {json.dumps(OTHER)}.\nMy answer: {JSON}"),
]


def read(text: str) -> Answer[ImplementPlanAnswer]:
    return read_answer(ImplementPlanAnswer, text)


@pytest.mark.parametrize(("text", "rung"), [pytest.param(text, rung, id=name) for name, text, rung in READ])
def test_a_readable_text_is_read_by_its_rung(text: str, rung: str) -> None:
    """A whole answer in the text is found, and its rung is recorded."""
    answer = read(text)
    assert answer.parsed_by == rung
    assert answer.value.success is True
    assert answer.value.key_learnings == ()
    assert bool(answer.warnings) == (rung == "mended")


@pytest.mark.parametrize("text", [pytest.param(text, id=name) for name, text in REFUSED])
def test_an_unreadable_text_is_refused_with_bounded_reasons(text: str) -> None:
    """A text without exactly one valid answer is refused with one to five short reasons."""
    with pytest.raises(AnswerError) as refused:
        read(text)
    assert 1 <= len(refused.value.reasons) <= 5
    assert all(0 < len(reason) <= 300 and "\n" not in reason for reason in refused.value.reasons)
