"""The input of a pipeline, from its command line."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from pydantic import ValidationError

from clients.cli.start.pipeline_options import PipelineOptions
from clients.starting.repository_path import repository_here, whole_path
from septet.contracts.pipeline import PipelineInput
from septet.contracts.wording import find_odd_text, reason_of
from septet.errors import InvalidInputError, UsageError
from septet.pipelines.issues import read_issue_file


def pipeline_input(options: PipelineOptions) -> PipelineInput:
    """Return the pipeline's input.

    Raises:
        UsageError: The repository or the issues are not clear.
        NotFoundError: The file cannot be read.
        InvalidInputError: A value is wrong; the message names the option.
    """
    if sum(way is not None for way in (options.issues, options.label, options.file)) != 1:
        remedy = "Give one of --issues N,N,…, --label L, or --file F."
        raise UsageError("It is not clear which issues are meant.", remedy=remedy)
    fields = {name: value for name, value in asdict(options).items() if value is not None}
    for name in ("repo", "issues", "file", "id"):
        fields.pop(name, None)
    fields["repository"] = whole_path(options.repo) if options.repo else repository_here("--repo REPO")
    if options.issues is not None:
        fields["issues"] = _numbers(options.issues)
    if options.file is not None:
        fields["issues"] = [issue.model_dump(mode="json") for issue in read_issue_file(options.file)]
    try:
        return PipelineInput.model_validate_json(json.dumps(fields), extra="forbid")
    except ValidationError as error:
        details = error.errors(include_url=False, include_input=False)
        raise InvalidInputError(_wrong_option(find_odd_text(fields) or details[0])) from error


def _numbers(text: str) -> list[int]:
    parts = [part.strip().removeprefix("#") for part in text.split(",")]
    wrong = next((part for part in parts if not (part.isascii() and part.isdigit() and int(part))), None)
    if wrong is not None:
        remedy = "Write the numbers with commas between them: --issues 1,2,3. Texts come with --file."
        message = f"--issues: {wrong!r} is not the number of an issue." if wrong else "--issues is empty."
        raise UsageError(message, remedy=remedy)
    return [int(part) for part in parts]


def _wrong_option(error: Mapping[str, Any]) -> str:
    """Return a message with the wrong option and the reason."""
    reason = reason_of(error)
    if not error["loc"]:
        return f"The options do not fit together: {reason}."
    name = str(error["loc"][0])
    option = "--repo" if name == "repository" else f"--{name.replace('_', '-')}"
    return f"{option} {reason}."
