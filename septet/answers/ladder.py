"""The answer ladder: read an agent's final text as a value that meets its contract.

    structured   the CLI's own structured output
    json         the whole text is the JSON value
    fence        the value is alone in a fenced block
    embedded     the value is in the middle of prose
    plain        the whole text is the value without JSON, such as a path
    mended       the value has mistakes of syntax that leave no doubt about its meaning

If a model prints its reasoning, only the text after the reasoning is read. Validation is always strict. The whole
text is read before any value counts. If two different values match, the answer is refused.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final, Generic, TypeVar, get_args

from pydantic import JsonValue, TypeAdapter, ValidationError

from septet.answers.json_values import JsonCandidate, Rung, values_in, whole_scalar
from septet.answers.plain import NotPlainError, PlainReader
from septet.answers.reasoning import answer_part, has_printed_marks, without_turn_end
from septet.errors import SeptetError
from septet.system.text import cut, one_line

T = TypeVar("T")

MAX_TEXT_CHARACTERS: Final = 4 * 1024 * 1024
MAX_VALUES: Final = 1000
"""The most JSON values in one text; a text with more values is refused."""
MAX_REASONS: Final = 5
MAX_REASON_CHARACTERS: Final = 300
_MAX_ERRORS: Final = 100

_RUNGS: Final[tuple[Rung, ...]] = get_args(Rung)
_IN_WORDS: Final[dict[Rung, str]] = {
    "structured": "The structured output",
    "json": "The JSON",
    "fence": "What stands in the fence",
    "embedded": "The JSON in the middle of the text",
    "plain": "The text",
    "mended": "The JSON",
}


@dataclass(frozen=True, slots=True)
class Answer(Generic[T]):
    """A value that meets its contract, and the way in which Septet read the value."""

    value: T
    parsed_by: Rung
    warnings: tuple[str, ...] = ()
    """Notes on mended mistakes and on skipped parts of the text."""


class AnswerError(SeptetError):
    """The answer could not be read."""

    def __init__(self, reasons: Iterable[str]) -> None:
        """Keep the last few `reasons`, each cut to a limit, because an answer is usually at the end of a text."""
        lines = (one_line(reason[: 2 * MAX_REASON_CHARACTERS]) for reason in dict.fromkeys(reasons))
        self.reasons = tuple(cut(line, MAX_REASON_CHARACTERS) for line in lines)[-MAX_REASONS:]
        super().__init__(f"The answer could not be read. {' '.join(self.reasons)}")


def read_answer(
    contract: type[T] | TypeAdapter[T],
    text: str | None,
    *,
    structured: JsonValue = None,
    plain: PlainReader | None = None,
) -> Answer[T]:
    """Return the one answer that meets the contract; otherwise raise `AnswerError` with reasons for the agent."""
    proof = _Proof(contract)
    if answer := proof.one_of(_output_candidates(structured)):
        return answer
    text = text or ""
    warnings = [*proof.reasons]
    if len(text) > MAX_TEXT_CHARACTERS:
        warnings.append(f"Of {len(text)} characters only the last {MAX_TEXT_CHARACTERS} were looked at.")
    whole = without_turn_end(text[-MAX_TEXT_CHARACTERS:])
    final = answer_part(whole)
    scalar = whole_scalar(final)
    structures = _structures(scalar, final)
    answer = proof.one_of([*scalar, *structures])
    if not (answer or structures):
        if final.strip():
            proof.reasons.append("The text holds no JSON object.")
        elif whole.strip():
            proof.reasons.append("Only reasoning was printed, and no answer behind it.")
        else:
            proof.reasons.append("The text is empty.")
        if final != whole and not has_printed_marks(whole):  # the text only quotes such marks
            answer = proof.one_of(_plain(plain, whole))
        answer = answer or proof.one_of(_plain(plain, final))
    if not answer:
        raise AnswerError(proof.reasons)
    return replace(answer, warnings=(*warnings, *answer.warnings))


def _output_candidates(value: JsonValue) -> Iterator[JsonCandidate]:
    """Yield the CLI's structured output; if the output is a string, also yield the JSON value in the string."""
    if value is not None:
        yield JsonCandidate(value, "structured")
    if isinstance(value, str):
        yield from (
            replace(candidate, rung="structured") for candidate in values_in(value) if candidate.rung == "json"
        )


def _structures(scalar: list[JsonCandidate], text: str) -> list[JsonCandidate]:
    """Return the arrays and objects in a text, or in the string of `scalar` if the whole text is a JSON string."""
    inner = next((candidates.value for candidates in scalar if isinstance(candidates.value, str)), text)
    candidates = list(islice(values_in(inner), MAX_VALUES + 1))
    if len(candidates) > MAX_VALUES:
        raise AnswerError([f"The text holds more than {MAX_VALUES} JSON values."])
    return candidates


def _plain(read: PlainReader | None, text: str) -> Iterator[JsonCandidate]:
    """Yield the value that `read` finds in a text; if `read` refuses the text, yield the reason as a fault."""
    try:
        if read and text.strip():
            yield JsonCandidate(read(text), "plain")
    except NotPlainError as error:
        yield JsonCandidate(None, "plain", faults=(str(error),))


class _Proof(Generic[T]):
    """Checks values against a contract, and collects the reasons why values are invalid."""

    def __init__(self, contract: type[T] | TypeAdapter[T]) -> None:
        self.reasons: list[str] = []
        self._adapter = contract if isinstance(contract, TypeAdapter) else TypeAdapter(contract)

    def one_of(self, candidates: Iterable[JsonCandidate]) -> Answer[T] | None:
        """Return the one answer of the valid candidates; `None` if none is valid; raise if their values differ."""
        answers: dict[str, Answer[T]] = {}
        for candidate in candidates:
            for canonical, answer in self._prove(candidate):
                before = answers.get(canonical, answer)
                answers[canonical] = min(before, answer, key=lambda each: _RUNGS.index(each.parsed_by))
        if len(answers) > 1:
            raise AnswerError([f"{len(answers)} different values match. Answer with one."])
        return next(iter(answers.values()), None)

    def _prove(self, candidate: JsonCandidate) -> Iterator[tuple[str, Answer[T]]]:
        """Yield the candidate's canonical JSON and its answer; if the candidate is invalid, record the reason."""
        complaint = "; ".join(candidate.faults)
        values = [candidate.value]
        match candidate.value:
            case [dict() as only_member]:
                values.append(only_member)
        for value in () if candidate.faults else values:
            try:
                checked = self._adapter.validate_json(
                    json.dumps(value, allow_nan=False), strict=True, extra="forbid"
                )
            except ValidationError as error:
                complaint = _complaint(error)
            except (ValueError, RecursionError) as error:  # an infinite number; a depth that no text reaches
                complaint = str(error)
            else:
                warnings = (f"Mended in the answer: {', '.join(candidate.mends)}.",) if candidate.mends else ()
                yield json.dumps(value, sort_keys=True), Answer(checked, candidate.rung, warnings)
                return
        self.reasons.append(f"{_IN_WORDS[candidate.rung]} cannot be used: {complaint}.")


def _complaint(error: ValidationError) -> str:
    if error.error_count() > _MAX_ERRORS:
        return f"it breaks the schema in {error.error_count()} places"
    errors = error.errors(include_url=False, include_context=False, include_input=False)[:4]
    return "; ".join(": ".join([".".join(map(str, one["loc"])) or "value", one["msg"]]) for one in errors)
