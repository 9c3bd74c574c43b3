"""The additions to steps of a pipeline's work orders: notes for prompts, and a folder for results."""

from septet.contracts.names import Step
from septet.contracts.steps import StepCall
from septet.pipelines.notes import executor_note, planner_note, summary_note
from septet.pipelines.store import PipelineStore, issue_of, store_of
from septet.state import StateDir


def pipeline_note(state: StateDir, call: StepCall) -> str:
    """Return the note that follows the command in the prompt of a pipeline's step."""
    if call.step is Step.BUILD_PLAN:
        return planner_note(call.pipeline, issue_id(call))
    if call.step is Step.IMPLEMENT_PLAN:
        return executor_note(call.pipeline, issue_id(call), pipeline_store(state, call).solution(issue_id(call)))
    return ""


def summary_for_new_session(state: StateDir, call: StepCall) -> str:
    """Return the summary of earlier sessions for a new session in a pipeline's lane; empty without a summary."""
    summary = pipeline_store(state, call).summary(call.workspace.lane) if call.workspace.lane else ""
    return summary_note(summary) if summary else ""


def issue_id(call: StepCall) -> str:
    """Return the id of the call's issue in its pipeline."""
    return issue_of(call.pipeline, call.workspace.work_order_id)


def pipeline_store(state: StateDir, call: StepCall) -> PipelineStore:
    """Return the folder of the call's pipeline."""
    return store_of(state, call.pipeline)
