"""The input of a new work order, from its command line."""

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from clients.cli.start.options import CreateOptions, IssueOptions, RunOptions
from clients.starting.checks import one_of
from clients.starting.repository_path import RepositoryReference, issue_number, parse_reference, repository_here
from clients.starting.tracked_issue import tracker_key, with_issue_of_page
from septet.contracts.names import Step
from septet.contracts.order import TEXT_LIMIT_BYTES, StepSettings, WorkOrderInput
from septet.contracts.wording import find_odd_text, reason_of
from septet.errors import InvalidInputError, NotFoundError, UsageError

_NUMBER: Final = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?")
_OPTION_OF: Final = {"repository": "--repo", "description": "--body", "labels": "--label"}
"""The names of options, by the names of the input's fields; only names that differ."""
_NO_TEXT: Final = "Give a text file in UTF-8, whose first line is the title."


def order_input(options: RunOptions | CreateOptions) -> WorkOrderInput:
    """Return the work order's input.

    Raises:
        UsageError: The repository or the issue is not clear, or `--step` has another form.
        InvalidInputError: A value is wrong; the message names the option.
        NotFoundError: The issue's file cannot be read.
    """
    stage = options.stage if isinstance(options, CreateOptions) else None
    fields = {**_work_fields(options.target, options.repo, options.issue), "stage": stage, **asdict(options.order)}
    fields |= {"labels": fields.pop("label"), "steps": _step_settings(fields.pop("step") or ())}
    del fields["id"]
    try:
        return WorkOrderInput.model_validate_json(
            json.dumps({name: value for name, value in fields.items() if value is not None}), extra="forbid"
        )
    except ValidationError as error:
        raise _wrong_option(find_odd_text(fields) or error.errors()[0]) from error


def _work_fields(target: str | None, repo: str | None, issue: IssueOptions) -> dict[str, Any]:
    """Return the input's fields for the repository and the issue, without a read of a tracker's issue."""
    if not (key := tracker_key(target or "")):
        reference = _reference(target, repo)
        return {"repository": reference.repository, **_issue_fields(issue, reference, target)}
    if any(option is not None for option in asdict(issue).values()):
        raise UsageError("Several issues are named.", remedy=f"Leave out all but the address of {key}.")
    fields = with_issue_of_page({"repository": target})
    return fields if repo is None else {**fields, "repository": _reference(None, repo).repository}


def _reference(target: str | None, repo: str | None) -> RepositoryReference:
    """Return the named repository, else this folder's repository; a number such as `42` names an issue there."""
    number = issue_number(target or "")
    if number is not None:
        return replace(_reference(None, repo), issue=number)
    if target is not None and repo is not None:
        raise UsageError(f"Two repositories are named: {target} and {repo}.", remedy="Leave one of them out.")
    named = target if target is not None else repo
    if named is not None:
        return parse_reference(named)
    return RepositoryReference(repository_here("septet run PATH-OR-ADDRESS …, or the address of an issue"))


def _wrong_option(error: Mapping[str, Any]) -> InvalidInputError:
    """Return the error for a wrong option with the reason, or with the closest name for an unknown name."""
    name = str(error["loc"][0]) if error["loc"] else ""
    option = _OPTION_OF.get(name, f"--{name.replace('_', '-')}" if name else "")
    reason, remedy = reason_of(error), ""
    if name == "steps":
        parts = [str(part) for part in error["loc"][1:] if part != "[key]"]
        option = f"--step {'.'.join(parts)}"
        if error["loc"][-1] == "[key]":
            reason, remedy = "names no step", one_of(parts[0], Step)
        elif error["type"] == "extra_forbidden":
            reason, remedy = "is not a setting of a step", one_of(parts[-1], StepSettings.model_fields)
    message = f"{option} {reason}." if option else f"{reason[:1].upper()}{reason[1:]}."
    return InvalidInputError(message, remedy=remedy)


def _issue_fields(issue: IssueOptions, reference: RepositoryReference, target: str | None) -> dict[str, Any]:
    number = issue.issue if issue.issue is not None else reference.issue
    given_ways = [number is not None, issue.issue_file is not None, issue.title is not None]
    if sum(given_ways) != 1 or (issue.body is not None and issue.title is None):
        remedy = (
            "Give one of: the address of an issue, --issue N, --issue-file FILE, or --title TEXT with --body TEXT."
        )
        problem = "Several issues are named." if sum(given_ways) > 1 else "No issue is named."
        if target is not None and " " in target.strip() and not any(given_ways):
            problem = f"No issue is named: {target!r} was taken for a repository."
            remedy = f"If it says what to do: --title {shlex.quote(target)}. {remedy}"
        raise UsageError(problem, remedy=remedy)
    if number is not None:
        return {"issue": number}
    title, body = (issue.title, issue.body) if issue.issue_file is None else _read_issue(issue.issue_file)
    if not (title or "").strip():
        raise InvalidInputError("--title is empty.", remedy="Say in a few words what is wrong or wanted.")
    return {"title": title, "description": body or ""}


def _read_issue(path: Path) -> tuple[str, str]:
    try:
        with path.open("rb") as file:
            content = file.read(TEXT_LIMIT_BYTES + 1)
    except OSError as error:
        raise NotFoundError(f"--issue-file {path}: {error.strerror}.", remedy="Name a text file.") from error
    try:
        text = content[:TEXT_LIMIT_BYTES].decode(errors="strict" if len(content) <= TEXT_LIMIT_BYTES else "ignore")
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"--issue-file {path} is not a text file.", remedy=_NO_TEXT) from error
    text = text.removeprefix("\ufeff").strip()
    if "\0" in text:
        raise InvalidInputError(f"--issue-file {path} is not a text file.", remedy=_NO_TEXT)
    if len(content) > TEXT_LIMIT_BYTES:
        remedy = "Put the text into an issue of the forge, or a file of the repository, and name it here."
        raise InvalidInputError(f"--issue-file {path} has more than {TEXT_LIMIT_BYTES:,} bytes.", remedy=remedy)
    if not text:
        raise InvalidInputError(
            f"--issue-file {path} is empty.", remedy="Write the title on its first line, and the text below it."
        )
    title, _, body = text.partition("\n")
    return title.lstrip("# ").strip(), body.strip()


def _step_settings(settings: Sequence[str]) -> dict[str, dict[str, object]]:
    """Parse `STEP.KEY=VALUE`; the work order's input validates the step and the key."""
    steps: dict[str, dict[str, object]] = {}
    for setting in settings:
        where, equals, value = setting.partition("=")
        step, dot, key = where.partition(".")
        if not (equals and dot and step and key and value):
            remedy = "Write it as --step STEP.KEY=VALUE, such as --step implement_plan.model=opus."
            raise UsageError(f"--step {setting} is not understood.", remedy=remedy)
        steps.setdefault(step, {})[key] = json.loads(value) if _NUMBER.fullmatch(value) else value
    return steps
