"""A prepared turn: its requests, its folders, its fence and its checkpoint."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from temporalio import activity

from activities.host.frozen_inputs import FrozenInputs, read_frozen_inputs, words_of
from activities.host.host import Host
from activities.host.running_attempts import Fence, take_fence
from activities.outgoing.leaving_content import folder_of_reader, leaving_of, parts_of, reading_prompt
from septet.agents.clis.adapter import Turn
from septet.agents.clis.registry import adapter_for
from septet.agents.runs.folders import read_archive
from septet.agents.runs.records import Payer
from septet.agents.runs.usage import last_of_session
from septet.agents.turns.request import TurnRequest
from septet.answers.steps import finalizer_prompt, is_step_answer, request_schema_of
from septet.base_checks import result_of
from septet.commands.command import load, load_rework, rework_values, values
from septet.commands.placeholders import prompt, step_note
from septet.contracts.names import Step
from septet.contracts.steps import EndCall, FinalizeCall, StepCall, StepResult
from septet.contracts.workspace import Workspace
from septet.errors import WorkspaceError
from septet.git.engine.place import Place
from septet.git.vault.vault import list_snapshots, vault_at
from septet.pipelines.notes import executor_note, planner_note, summary_note
from septet.pipelines.store import issue_of, store_of
from septet.repository_file import load_repository_settings
from septet.repository_settings import Opening, RepositorySettings, openings_of


@dataclass(frozen=True, slots=True)
class PreparedTurn:
    """A turn that is ready to run; its attempt may have effects only as long as the fence is open."""

    workspace: Workspace
    place: Place
    request: TurnRequest
    fence: Fence
    fallback: TurnRequest | None = field(default=None, kw_only=True)
    """The request of the fallback agent, which takes over at usage limits or after a refusal of the first model.
    """
    find_openings: Callable[[], Sequence[Opening]] = field(default=tuple, kw_only=True)
    """Returns the budget accounts that must allow an agent to start."""


@dataclass(frozen=True, slots=True)
class PreparedStep(PreparedTurn):
    """The turn of a step, or of a step's finalizer."""

    call: StepCall
    repository_settings: RepositorySettings
    starts_from: str
    """The checkpoint to restore before a new agent starts; empty if the workflow's history names none."""
    began_at: str
    """The commit on which the work order began: every difference from this commit is its work."""
    earlier: StepResult | None = field(default=None, kw_only=True)
    """The result of earlier activities of the same try, if these activities started agents."""


def prepare_step(host: Host, call: StepCall) -> PreparedStep:
    """Return a step's turn, ready to run: record the attempt, read the inputs, and fill the step's command.

    Raises:
        SupersededError: A later attempt has begun.
        NotFoundError, WorkspaceError: The workspace is not on this host, or was not opened completely.
        CommandError, RepositorySettingsError: A command or the settings of the repository cannot be used.
    """
    place = opened_place(host, call)
    inputs = read_frozen_inputs(place)
    settings = load_repository_settings(inputs.files.get)
    warm = call.keeps_process and host.keeps_process(call.workspace.agent)
    in_lane = call.pipeline and call.workspace.lane
    summary = store_of(host.state, call.pipeline).summary(call.workspace.lane) if in_lane else ""
    turn = Turn(
        prompt=_prompt_of(host, call, place, inputs),
        worktree=_folder_of(host, call, place),
        for_new_session=summary_note(summary) if summary else "",
        resume_id=call.session_id,
        warm=warm,
        schema=request_schema_of(call.name, in_pipeline=bool(call.pipeline)),
        tools=settings.tools_for(call.table, call.settings, one_process=warm),
        model=settings.model_for(call.table, call.model, call.settings, host.settings.model),
    )
    return _prepare(host, call, place, settings, turn)


def prepare_finalizer(host: Host, finalizing: FinalizeCall) -> PreparedStep:
    """Return a turn without tools in which the same session gives only the answer again.

    Raises:
        SupersededError: A later attempt has begun.
        NotFoundError, WorkspaceError: The workspace is not on this host, or was not opened completely.
    """
    call = finalizing.call
    place, in_pipeline = opened_place(host, call), bool(call.pipeline)
    settings = load_repository_settings(read_frozen_inputs(place).files.get)
    turn = Turn(
        prompt=finalizer_prompt(call.name, finalizing.reasons, finalizing.attempt, in_pipeline=in_pipeline),
        worktree=_folder_of(host, call, place),
        resume_id=finalizing.session_id,
        about_session=True,
        schema=request_schema_of(call.name, in_pipeline=in_pipeline),
        tools="none",
        model=settings.model_for(call.table, call.model, call.settings, host.settings.model),
    )
    step = _prepare(host, call, place, settings, turn)
    return replace(step, starts_from=finalizing.result.checkpoint or "", earlier=finalizing.result)


def prepare_end(host: Host, call: EndCall) -> PreparedStep:
    """Return what is needed to end a cancelled step's agent, even if the finalizer started the agent.

    This reads no file of the repository, so broken commands or settings prevent no rescue.

    Raises:
        SupersededError: A later attempt has begun.
        NotFoundError, WorkspaceError: The workspace is not on this host.
    """
    place = opened_place(host, call)
    step = _prepare(host, call, place, RepositorySettings(), Turn(prompt="", worktree=place.worktree))
    if call.activity_id is not None:
        key = replace(step.request.key, activity_id=call.activity_id or step.request.key.activity_id)
        earlier = call.earlier if call.earlier is not None and call.earlier.run else None
        return replace(step, request=replace(step.request, key=key), earlier=earlier)
    records = [run.record for run in host.runs.of(step.request.order_id) if run.record is not None]
    ours = [record for record in records if record.step in {call.name, _finalizer_of(call.name)}]
    return replace(step, request=replace(step.request, key=ours[-1].key)) if ours else step


def opened_place(host: Host, call: StepCall) -> Place:
    """Return the folders of a step's work order; refuse a workspace that the janitor has removed.

    Raises:
        NotFoundError: The workspace is not on this host.
        WorkspaceError: The workspace was removed; the message names its last snapshot.
    """
    workspace = call.workspace
    place = host.place(workspace.place_id, visitor=workspace.work_order_id if workspace.lane else "")
    if place.worktree.exists():
        return place
    last = list_snapshots(vault_at(place), place.order_id)[-1:]
    rest, remedy = "no snapshot of it is left", "Start a new work order."
    if last:
        rest = f"its last state is snapshot {last[0].name}"
        remedy = (
            f"`septet rescue restore {last[0].name} --to DIR` writes it to DIR. Commit it on a branch of the "
            "repository, then start a new work order with `--base BRANCH`."
        )
    raise WorkspaceError(f"{place.worktree} was removed: {rest}.", remedy=remedy)


def _prepare(host: Host, call: StepCall, place: Place, settings: RepositorySettings, turn: Turn) -> PreparedStep:
    """Record the attempt, and return its prepared turn."""
    workspace, name = call.workspace, call.name
    fence = take_fence(host.runs, place.order_id, workspace.visit)
    request = TurnRequest(
        key=replace(fence.key, activity_id=call.settles) if call.settles else fence.key,
        order_id=place.order_id,
        number=call.number,
        step=_finalizer_of(name) if turn.about_session else name,
        adapter=adapter_for(workspace.agent),
        turn=turn,
        limits=settings.limits_for(call.table, call.limits, call.settings),
        runtime=host.runtime,
        objects=None if call.reads else place.objects,
        payer=payer_of(workspace, name, call.project, call.model),
        is_answer=partial(is_step_answer, name=name, in_pipeline=bool(call.pipeline)),
    )
    began_at = workspace.began_at or place.base_sha
    if call.rework is not None:
        began_at = call.rework.merges or call.rework.head or began_at
    other = _turn_of_fallback(host, call, settings, turn) if workspace.fallback_agent else None
    own, fallback = by_agents(workspace, request, other)
    return PreparedStep(
        workspace,
        place,
        own,
        fence,
        call,
        settings,
        call.starts_from,
        began_at,
        fallback=fallback,
        find_openings=partial(openings_of, host.settings, call, settings),
    )


def _turn_of_fallback(host: Host, call: StepCall, settings: RepositorySettings, turn: Turn) -> Turn:
    """Return the fallback agent's turn, which has its own tools and not the first agent's model."""
    if turn.about_session:
        return replace(turn, model=None, warm=False)
    warm = call.keeps_process and host.keeps_process(call.workspace.fallback_agent)
    tools = settings.tools_for(call.table, call.settings, one_process=warm)
    return replace(turn, model=None, warm=warm, tools=tools)


def payer_of(workspace: Workspace, step: str, project: str, model: str | None) -> Payer:
    """Return where a turn's costs are counted: the work order and step, with the given project and model."""
    return Payer(
        project=project or workspace.project,
        order_id=workspace.work_order_id,
        step=step,
        agent=workspace.agent,
        asked_model=model or "",
        of_pipeline=bool(workspace.lane),
    )


def by_agents(
    workspace: Workspace, request: TurnRequest, other: Turn | None
) -> tuple[TurnRequest, TurnRequest | None]:
    """Return a turn's request for the first agent, and its request for the fallback agent or `None`.

    A session continues only with the agent that owns it; any other agent begins a new session. A turn without a
    model also begins a new session if the session would keep an earlier model. A turn with
    `about_session`, such as a finalizer's, goes only to the session's agent.
    """
    session, runs, turn = request.turn.resume_id, request.runtime.runs, request.turn
    last = last_of_session(runs.lately(request.order_id), session) if session is not None else None
    owner = last.agent if last is not None else workspace.agent
    second = None
    if other is not None:
        resumed = session if owner == workspace.fallback_agent else None
        adapter = adapter_for(workspace.fallback_agent)
        second = replace(request, adapter=adapter, turn=replace(other, resume_id=resumed))
    if turn.about_session:
        return (second if second is not None and owner == workspace.fallback_agent else request), None
    if session is not None:
        archived = read_archive(runs.folder_of(request.order_id)).of(session)
        asked = last.model if last is not None else archived.model
        keeps = bool(asked) and turn.model is None and request.adapter.capabilities.keeps_model
        if keeps or owner != workspace.agent:
            request = replace(request, turn=replace(turn, resume_id=None))
    return (request, None) if second is None else (replace(request, has_fallback=True), second)


def _folder_of(host: Host, call: StepCall, place: Place) -> Path:
    """Return the folder in which the agent works: the worktree, or an empty folder for the reader."""
    return folder_of_reader(host, call) if call.reads else place.worktree


def _prompt_of(host: Host, call: StepCall, place: Place, inputs: FrozenInputs) -> str:
    if call.reads:
        leaving = leaving_of(place, call)
        return reading_prompt(leaving, parts_of(place, leaving), inputs.issue)
    if call.rework is None:
        command = load(call.step, call.progress.issue_class, inputs.files.get)
        filled = values(call.step, call.workspace, call.progress, inputs.issue)
    else:
        words = words_of(place, activity.info().workflow_run_id or "", call.rework.round)
        command = load_rework(inputs.files.get)
        filled = rework_values(call.workspace, call.progress, inputs.issue, words)
    note = ""
    if call.pipeline:
        issue_id = issue_of(call.pipeline, call.workspace.work_order_id)
        if call.step is Step.BUILD_PLAN:
            note = planner_note(call.pipeline, issue_id)
        elif call.step is Step.IMPLEMENT_PLAN:
            solution = store_of(host.state, call.pipeline).solution(issue_id)
            note = executor_note(call.pipeline, issue_id, solution)
    # A step that changes code is prepared for checks that already fail on the base commit.
    changes_code = call.step in {Step.IMPLEMENT_PLAN, Step.CREATE_COMMIT}
    base = result_of(host.state, place) if changes_code else None
    base_note = base.note() if base is not None else ""
    return prompt(command, filled, note, base_note, step_note(call.reasons, call.attempt))


def _finalizer_of(name: str) -> str:
    return f"{name}-finalizer"
