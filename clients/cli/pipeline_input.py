"""The options of `septet pipeline`, and the pipeline's input that they make."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Final

from cyclopts import Parameter
from pydantic import ValidationError

from clients.cli import options as given
from clients.cli.options import option
from clients.starting.repository_path import repository_here, whole_path
from septet.contracts.pipeline import PipelineInput
from septet.contracts.wording import find_odd_text, reason_of
from septet.errors import InvalidInputError, UsageError
from septet.pipelines.issues import read_issue_file


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineOptions:
    """A pipeline as the command line gives it; but for the first ones and `id`, the fields of its input."""

    repo: Annotated[
        str | None,
        option("--repo", metavar="REPO", help="The repository; by default the one of this folder."),
    ] = None
    issues: Annotated[
        str | None, option("--issues", metavar="N,N,…", help="Issues of the repository's forge.")
    ] = None
    label: Annotated[str | None, option(metavar="LABEL", help="The forge's open issues with this label.")] = None
    file: Annotated[
        Path | None,
        option("--file", metavar="FILE", help='JSON: [{"id", "title", "body", "depends_on"}, …].'),
    ] = None
    agent: given.Agent = None
    planner: Annotated[str | None, option(metavar="AGENT", help="Another agent for the planning.")] = None
    executor: Annotated[str | None, option(metavar="AGENT", help="Another agent for the implementation.")] = None
    fallback_agent: given.FallbackAgent = None
    model: given.Model = None
    base: given.Base = None
    push_to: given.PushTo = None
    project: given.Project = None
    executors: Annotated[int | None, option(metavar="K", help="Parallel executors. [default: 1]")] = None
    one_branch: Annotated[
        bool,
        option("--one-branch", help="Put all issues into one pull request, a commit for each."),
    ] = False
    fresh: Annotated[
        bool,
        option("--fresh", help="Start a new session for each issue instead of continuing the last one."),
    ] = False
    plans_ahead: Annotated[
        int | None, option(metavar="N", help="Plans that may wait for an executor. [default: 5]")
    ] = None
    plan_seconds: Annotated[
        float | None, option(metavar="S", help="The time limit of one plan. [default: 300]")
    ] = None
    execution_seconds: Annotated[
        float | None, option(metavar="S", help="The time limit of one implementation. [default: 600]")
    ] = None
    context_tokens: Annotated[
        int | None,
        option(metavar="N", help="Summarise a longer session and begin a new one. [default: 120000]"),
    ] = None
    draft: given.Draft = False
    budget: given.Budget = None
    id: Annotated[str | None, option("--id", metavar="ID", help="The pipeline's id. [default: a new one]")] = None

    def order(self) -> PipelineInput:
        """Return the pipeline's input.

        Raises:
            UsageError: It is not clear which repository or which issues are meant.
            NotFoundError: The file cannot be read.
            InvalidInputError: A value is wrong; the message names the option.
        """
        if sum(way is not None for way in (self.issues, self.label, self.file)) != 1:
            remedy = "Give one of --issues N,N,…, --label L, or --file F."
            raise UsageError("It is not clear which issues are meant.", remedy=remedy)
        fields = {name: value for name, value in asdict(self).items() if value is not None}
        for name in ("repo", "issues", "file", "id"):
            fields.pop(name, None)
        fields["repository"] = whole_path(self.repo) if self.repo else repository_here("--repo REPO")
        if self.issues is not None:
            fields["issues"] = _numbers(self.issues)
        if self.file is not None:
            fields["issues"] = [issue.model_dump(mode="json") for issue in read_issue_file(self.file)]
        try:
            return PipelineInput.model_validate_json(json.dumps(fields), extra="forbid")
        except ValidationError as error:
            details = error.errors(include_url=False, include_input=False)
            raise InvalidInputError(_wrong_option(find_odd_text(fields) or details[0])) from error


NO_OPTIONS: Final = PipelineOptions()


def _numbers(text: str) -> list[int]:
    parts = [part.strip().removeprefix("#") for part in text.split(",")]
    wrong = next((part for part in parts if not (part.isascii() and part.isdigit() and int(part))), None)
    if wrong is not None:
        remedy = "Write the numbers with commas between them: --issues 1,2,3. Texts come with --file."
        message = f"--issues: {wrong!r} is not the number of an issue." if wrong else "--issues is empty."
        raise UsageError(message, remedy=remedy)
    return [int(part) for part in parts]


def _wrong_option(error: Mapping[str, Any]) -> str:
    """Say which option is wrong, and why."""
    reason = reason_of(error)
    if not error["loc"]:
        return f"The options do not fit together: {reason}."
    name = str(error["loc"][0])
    option = "--repo" if name == "repository" else f"--{name.replace('_', '-')}"
    return f"{option} {reason}."
