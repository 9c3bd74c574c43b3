"""The paths of pipelines. Each answers what the command line answers."""

from http import HTTPStatus
from typing import Final

from fastapi import APIRouter, Depends, Response

from clients.http.bodies import CancelBody, CancelJson, json_alone
from clients.http.parameters import After, Connected, IdempotencyKey, Limit
from clients.http.pipeline_bodies import IssueJson, NewPipelineJson, PipelineId
from clients.http.problems import problems, problems_of_a_body
from clients.temporal.pipelines import PIPELINES_AT_ONCE
from septet.contracts.pipeline_replies import PipelineReply, PipelinesReply, ReportReply, ResultsReply

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
