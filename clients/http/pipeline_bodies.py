"""What the API is sent about pipelines."""

import re
from typing import Annotated, Any, Final

from fastapi import Path
from pydantic import AfterValidator, ConfigDict, Field

from clients.http.bodies import CancelBody, read_strictly
from septet.contracts.pipeline import PIPELINE_ID, IssueId, PipelineInput

_PIPELINE_ID: Final = re.compile(PIPELINE_ID)
_ID_SCHEMA: Final[dict[str, Any]] = {"pattern": PIPELINE_ID, "examples": ["pl-1f0c9a2b"]}
_NOT_NULL: Final[dict[str, Any]] = {"not": {"type": "null"}}


def _pipeline_id(text: str) -> str:
    if not _PIPELINE_ID.fullmatch(text):
        message = "an id has up to 40 letters, digits, dots, hyphens and underscores"
        raise ValueError(message)
    return text


PipelineId = Annotated[
    str, AfterValidator(_pipeline_id), Path(description="The pipeline's id.", json_schema_extra=_ID_SCHEMA)
]


class NewPipeline(PipelineInput):
    """A repository and its issues: a list of numbers and texts, or a label."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [
                {"required": ["issues"], "properties": {"issues": {"minItems": 1}, "label": {"type": "null"}}},
                {"required": ["label"], "properties": {"label": _NOT_NULL, "issues": {"maxItems": 0}}},
            ],
            "not": {
                "required": ["one_branch", "executors"],
                "properties": {"one_branch": {"const": True}, "executors": {"minimum": 2}},
            },
            "examples": [{"repository": "https://github.com/o/r", "issues": [1, 2, 3]}],
        }
    )

    id: Annotated[str, AfterValidator(_pipeline_id), Field(json_schema_extra=_ID_SCHEMA)] | None = None
    """The pipeline's id; a used one is refused. One is made when absent."""

    def order(self) -> PipelineInput:
        """Return the pipeline's input."""
        return PipelineInput(**{name: getattr(self, name) for name in PipelineInput.model_fields})


class IssueBody(CancelBody):
    """Whose decision it is about one issue, and why; of `replan` the planner is told why."""

    issue_id: IssueId


NewPipelineJson = Annotated[NewPipeline, read_strictly(NewPipeline)]
IssueJson = Annotated[IssueBody, read_strictly(IssueBody)]
