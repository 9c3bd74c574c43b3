"""The paths of pipelines. Each answers what the command line answers."""

import re
from http import HTTPStatus
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Path, Response
from pydantic import AfterValidator, ConfigDict, Field

from clients.http.bodies import (
    After,
    CancelBody,
    CancelJson,
    Connected,
    IdempotencyKey,
    Limit,
    json_alone,
    read_strictly,
)
from clients.http.problems import problems, problems_of_a_body
from clients.temporal.pipelines import PIPELINES_AT_ONCE
from septet.contracts.pipeline import PIPELINE_ID, IssueId, PipelineInput
from septet.contracts.pipeline_replies import PipelineReply, PipelinesReply, ReportReply, ResultsReply

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


router = APIRouter(
    prefix="/pipelines",
    tags=["pipelines"],
    responses=problems(HTTPStatus.NOT_FOUND, HTTPStatus.UNPROCESSABLE_ENTITY),
)
_DECISION: Final = {**problems_of_a_body(), **problems(HTTPStatus.CONFLICT)}
_LOCATION: Final = {"Location": {"description": "The pipeline's path.", "schema": {"type": "string"}}}
_JSON_ALONE: Final = [Depends(json_alone)]


@router.post(
    "",
    status_code=HTTPStatus.CREATED,
    dependencies=_JSON_ALONE,
    responses={**_DECISION, HTTPStatus.CREATED: {"headers": _LOCATION}},
)
async def create_pipeline(
    new: NewPipelineJson, operations: Connected, response: Response, idempotency_key: IdempotencyKey = ""
) -> PipelineReply:
    """Start a pipeline: circles and unknown dependencies among its issues are refused before anything starts."""
    reply = await operations.for_pipelines.start(new.order(), new.id, key=idempotency_key)
    response.headers["Location"] = f"{router.prefix}/{reply.pipeline.id}"
    return reply


@router.get("")
async def list_pipelines(
    operations: Connected, limit: Limit = PIPELINES_AT_ONCE, after: After = ""
) -> PipelinesReply:
    """List pipelines, open ones first, each with the number of issues in each state."""
    return await operations.pipelines.list(after=after, limit=limit)


@router.get("/{pipeline_id}")
async def get_pipeline(pipeline_id: PipelineId, operations: Connected) -> PipelineReply:
    """Show one pipeline with what is known of each issue, and what those that have no result yet will cost."""
    return await operations.for_pipelines.show(pipeline_id)


@router.get("/{pipeline_id}/results")
async def get_results(pipeline_id: PipelineId, operations: Connected) -> ResultsReply:
    """Show both documents of its results, as of now."""
    return await operations.pipelines.results(pipeline_id)


@router.get("/{pipeline_id}/report")
async def get_report(pipeline_id: PipelineId, operations: Connected) -> ReportReply:
    """Show the report on it, as of now."""
    return await operations.pipelines.report(pipeline_id)


@router.post("/{pipeline_id}/pause", dependencies=_JSON_ALONE, responses=_DECISION)
async def pause(pipeline_id: PipelineId, operations: Connected, body: CancelJson | None = None) -> PipelineReply:
    """Start nothing new until it is resumed; running issues continue."""
    decision = body or CancelBody()
    return await operations.pipelines.decide(pipeline_id, "pause", "", decision.who, decision.why)


@router.post("/{pipeline_id}/resume", dependencies=_JSON_ALONE, responses=_DECISION)
async def resume(pipeline_id: PipelineId, operations: Connected, body: CancelJson | None = None) -> PipelineReply:
    """Continue after a pause."""
    decision = body or CancelBody()
    return await operations.pipelines.decide(pipeline_id, "resume", "", decision.who, decision.why)


@router.post("/{pipeline_id}/stop", dependencies=_JSON_ALONE, responses=_DECISION)
async def stop(pipeline_id: PipelineId, operations: Connected, body: CancelJson | None = None) -> PipelineReply:
    """Finish the running issues and start no others."""
    decision = body or CancelBody()
    return await operations.pipelines.decide(pipeline_id, "stop", "", decision.who, decision.why)


@router.post("/{pipeline_id}/skip", dependencies=_JSON_ALONE, responses=_DECISION)
async def skip(pipeline_id: PipelineId, operations: Connected, body: IssueJson) -> PipelineReply:
    """Skip an issue that is not running, and the issues that depend on it."""
    return await operations.pipelines.decide(pipeline_id, "skip", body.issue_id, body.who, body.why)


@router.post("/{pipeline_id}/replan", dependencies=_JSON_ALONE, responses=_DECISION)
async def replan(pipeline_id: PipelineId, operations: Connected, body: IssueJson) -> PipelineReply:
    """Plan an issue again before it is implemented; `why` tells the planner what to change."""
    return await operations.pipelines.decide(pipeline_id, "replan", body.issue_id, body.who, body.why)


@router.post("/{pipeline_id}/cancel", dependencies=_JSON_ALONE, responses=_DECISION)
async def cancel(pipeline_id: PipelineId, operations: Connected, body: CancelJson | None = None) -> PipelineReply:
    """Stop all agents and running work orders; a rescue keeps the work of each."""
    decision = body or CancelBody()
    return await operations.pipelines.cancel(pipeline_id, decision.who, decision.why)
