"""The issues of a pipeline: read them from the forge or a file, order them, and shorten closed ones."""

import heapq
import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pydantic import ValidationError
from pydantic_core import to_json

from septet.contracts.order import LONGEST_TITLE
from septet.contracts.wording import describe_mistakes
from septet.errors import InvalidInputError, NotFoundError
from septet.pipelines.inputs import MOST_BEFORE, MOST_DEPENDENCIES, MOST_ISSUES, PipelineIssue, ReadIssues
from septet.pipelines.views import IssueState
from septet.system.text import cut_line, name_some

if TYPE_CHECKING:
    from septet.forges.forge import Forge


def circle_in(after: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Return the members of one circle of dependencies, the first again at the end; empty without a circle.

    `after` maps each thing to the things that must come before it; each of these is a key too.
    """
    finished_ids: set[str] = set()
    for start in after:
        way: list[str] = [start]
        rest = [iter(after[start])] if start not in finished_ids else []
        while rest:
            following = next(rest[-1], None)
            if following is None:
                rest.pop()
                finished_ids.add(way.pop())
            elif following in way:
                return (*way[way.index(following) :], following)
            elif following not in finished_ids:
                way.append(following)
                rest.append(iter(after[following]))
    return ()


_FORM: Final = 'It is a JSON list of [{"id": "A", "title": "…", "body": "…", "depends_on": ["B"]}] or numbers.'
_LIMIT_BYTES: Final = 8 * 1024 * 1024
_COMES_AFTER: Final = re.compile(
    r"^[ \t>*+-]{0,16}[*_]{0,2}(?:depends[ \t]{1,4}on|blocked[ \t]{1,4}by)[ \t]{0,4}[:*_]{0,5}"
    r"((?:[ \t]{0,4}(?:,|;|&|and\b)?[ \t]{0,4}#\d{1,18})+)",
    re.IGNORECASE | re.MULTILINE,
)
"""The pattern of a line such as "Depends on #12, #13" or "- Blocked by: #12". Each part is limited, because
strangers write such lines."""


def order_issues(issues: Iterable[PipelineIssue]) -> list[PipelineIssue]:
    """Return the issues in the given order, but each one after its dependencies.

    Raises:
        InvalidInputError: An id is repeated, a dependency is unknown, or the dependencies form a circle.
    """
    listing = list(issues)
    places = {issue.id: place for place, issue in enumerate(listing)}
    _refuse(listing, places)
    waits_for = {issue.id: set(issue.depends_on) for issue in listing}
    before: dict[str, list[str]] = {issue.id: [] for issue in listing}
    for issue in listing:
        for other in waits_for[issue.id]:
            before[other].append(issue.id)
    ready = [place for place, issue in enumerate(listing) if not waits_for[issue.id]]
    result: list[PipelineIssue] = []
    while ready:
        issue = listing[heapq.heappop(ready)]
        result.append(issue)
        for following in before[issue.id]:
            waits_for[following].discard(issue.id)
            if not waits_for[following]:
                heapq.heappush(ready, places[following])
    return result


def merge_issues(issues: Sequence[PipelineIssue], read: Sequence[PipelineIssue]) -> list[PipelineIssue]:
    """Return `issues` with the titles and dependencies in `read`; return `read` if `issues` is empty."""
    by_id = {issue.id: issue for issue in read}
    merged: list[PipelineIssue] = []
    for issue in issues:
        there = by_id.get(issue.id) if issue.number is not None else None
        if there is not None:
            more = (each for each in there.depends_on if each not in issue.depends_on)
            depends_on = (*issue.depends_on, *more)[:MOST_BEFORE]
            title = (issue.title or there.title)[:LONGEST_TITLE]
            merged.append(issue.model_copy(update={"title": title, "depends_on": depends_on}))
        else:
            merged.append(issue)
    return merged or list(read)


def read_issue_file(path: Path) -> tuple[PipelineIssue, ...]:
    """Return the issues of a JSON file: a list of `{id, title, body, depends_on?}`, or of issue numbers.

    Raises:
        NotFoundError: The file cannot be read.
        InvalidInputError: An entry is no issue; the message names the entry.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise NotFoundError(f"--file {path}: {error.strerror}.") from error
    if len(content) > _LIMIT_BYTES:
        raise InvalidInputError(f"{path} holds {len(content)} bytes, {_LIMIT_BYTES} are allowed.", remedy=_FORM)
    return issues_in(content, str(path))


def issues_in(content: bytes, place: str) -> tuple[PipelineIssue, ...]:
    """Return the issues of a JSON document; errors call the document `place`.

    Raises:
        InvalidInputError: The document is no list of issues; the message names the entry.
    """
    try:
        entries = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"{place} is not valid JSON: {error}.", remedy=_FORM) from error
    if not isinstance(entries, list) or not entries:
        raise InvalidInputError(f"{place} does not contain a list of issues.", remedy=_FORM)
    if len(entries) > MOST_ISSUES:
        message = f"{place} holds {len(entries)} issues, {MOST_ISSUES} are allowed: split it into two pipelines."
        raise InvalidInputError(message)
    return tuple(_issue(entry, f"{place}, entry {number}") for number, entry in enumerate(entries, start=1))


def depends_on_in(body: str, ids: Collection[str], own: str = "") -> tuple[str, ...]:
    """Return which of `ids` a body names as dependencies, except the issue `own` itself."""
    numbers = [number for match in _COMES_AFTER.finditer(body) for number in re.findall(r"#(\d+)", match[1])]
    return tuple(dict.fromkeys(number for number in numbers if number in ids and number != own))


def _issue(entry: object, place: str) -> PipelineIssue:
    fields = {"id": entry} if type(entry) is int else entry
    if not isinstance(fields, dict):
        raise InvalidInputError(f"{place}: it is neither an object nor a number.", remedy=_FORM)
    fields = {**fields, "id": _as_id(fields.get("id"))}
    if isinstance(fields.get("depends_on"), list):
        fields["depends_on"] = [_as_id(other) for other in fields["depends_on"]]
    if fields.get("title") is not None and fields.get("body") is None:
        fields["body"] = ""
    where = f"{place} ({fields['id']})" if isinstance(fields["id"], str) else place
    try:
        return PipelineIssue.model_validate_json(json.dumps(fields), extra="forbid")
    except ValidationError as error:
        why = describe_mistakes(error, PipelineIssue.model_fields)
        raise InvalidInputError(f"{where}: {why}.", remedy=_FORM) from error


def _as_id(value: object) -> object:
    return str(value) if type(value) is int else value


def _refuse(issues: Sequence[PipelineIssue], places: dict[str, int]) -> None:
    twice = [issue.id for place, issue in enumerate(issues) if places[issue.id] != place]
    if twice:
        message = f"issues: these ids occur more than once: {_join(twice)}."
        raise InvalidInputError(message, remedy="Name each issue once.")
    for issue in issues:
        if unknown := [other for other in issue.depends_on if other not in places]:
            message = f"issues: {issue.id} depends on {_join(unknown)}, which is not an issue of this pipeline."
            raise InvalidInputError(message, remedy="Name it among the issues, or take it out of depends_on.")
    links = sum(len(issue.depends_on) for issue in issues)
    if links > MOST_DEPENDENCIES:
        message = f"issues: they have {links} dependencies, and at most {MOST_DEPENDENCIES} are allowed."
        raise InvalidInputError(
            message,
            remedy="Leave out dependencies that follow from others, or split the issues into two pipelines.",
        )
    if circle := circle_in({issue.id: issue.depends_on for issue in issues}):
        message = f"issues: they wait for each other: {' → '.join(circle)}."
        raise InvalidInputError(message, remedy="Take one of these out of depends_on, or out of the issue's text.")


def _join(names: Sequence[str]) -> str:
    return name_some(list(dict.fromkeys(names)), 5)


TITLE_BYTES: Final = 80
MANY: Final = 200
"""The number of issues above which titles are cut when the pipeline starts."""
_ALL_BYTES: Final = 1_600_000
"""The most bytes of all issues as JSON; a Temporal payload holds two million bytes."""
_FEW: Final = 5
_WORDS_BYTES: Final = 160


def shorten_issue(state: IssueState, among: int) -> IssueState:
    """Return a closed issue's state; omit minor parts until `among` states of this size fit into a payload."""
    limit_bytes = _ALL_BYTES // among
    for leave_out in _LEFT_OUT:
        if len(to_json(state)) <= limit_bytes:
            break
        state = state.model_copy(update=leave_out(state))
    return state


def _outline(state: IssueState) -> dict[str, Any]:
    solution = state.solution
    return {"solution": solution.model_copy(update={"tasks": (), "files": ()}) if solution is not None else None}


def _words(state: IssueState) -> dict[str, Any]:
    solution, error, rescue = state.solution, state.error, state.rescue
    values: dict[str, Any] = {"title": cut_line(state.title, TITLE_BYTES), "overlaps": state.overlaps[:_FEW]}
    if solution is not None:
        values["solution"] = solution.model_copy(update={"summary": cut_line(solution.summary, TITLE_BYTES)})
    if error is not None:
        short = {"message": cut_line(error.message, _WORDS_BYTES), "remedy": cut_line(error.remedy, _WORDS_BYTES)}
        values["error"] = error.model_copy(update=short)
    if rescue is not None:  # the snapshot leads to the patch
        values["rescue"] = rescue.model_copy(
            update={"reason": cut_line(rescue.reason, TITLE_BYTES), "patch": None}
        )
    return values


def _files_and_sessions(state: IssueState) -> dict[str, Any]:
    path = cut_line(state.plan_path, TITLE_BYTES) if state.plan_path is not None else None
    return {"files_modified": (), "sessions": (), "overlaps": (), "plan_path": path}


_LEFT_OUT: Final[tuple[Callable[[IssueState], dict[str, Any]], ...]] = (
    lambda state: {"files_modified": state.files_modified[:_FEW]},
    _outline,
    _words,
    _files_and_sessions,
    lambda state: {"error": state.error.model_copy(update={"remedy": ""}) if state.error is not None else None},
)


def read_issues(forge: "Forge", request: ReadIssues) -> tuple[PipelineIssue, ...]:
    """Return issues of a forge with their titles and the dependencies in their texts.

    Only issues that this call reads count as dependencies.

    Raises:
        NotFoundError: Issues are missing, or no open issue has the label.
        InvalidInputError: Issues are closed, or too many issues have the label.
        ForgeUnavailableError: The forge did not answer.
        ForgeError: The forge refused the request.
    """
    issues = forge.open_issues(request.label) if request.label else ()
    if request.label and not issues:
        message = f"label: {request.repository} has no open issue with the label {request.label}."
        raise NotFoundError(message, remedy="Give an issue the label, or name the issues by their numbers.")
    wanted = [int(issue_id) for issue_id in request.ids]
    if wanted:
        named = forge.find_issues(wanted)
        there = {issue.number for issue in named}
        if missing := [number for number in wanted if number not in there]:
            message = f"issues: {request.repository} has no {_numbers(missing)}."
            raise NotFoundError(message, remedy="Check the numbers; issues that you may not read look the same.")
        if closed := [issue.number for issue in named if issue.state == "closed"]:
            message = f"issues: {_numbers(closed)} of {request.repository} are closed."
            raise InvalidInputError(message, remedy="Leave them out.")
        issues = (*issues, *named)
    known = {str(issue.number) for issue in issues}
    read = []
    for issue in issues:
        depends_on = depends_on_in(issue.body, known, str(issue.number))[:MOST_BEFORE]
        read.append(PipelineIssue(id=str(issue.number), title=issue.title[:LONGEST_TITLE], depends_on=depends_on))
    return tuple(read)


def _numbers(numbers: Sequence[int]) -> str:
    return name_some([f"#{number}" for number in numbers], 20)
