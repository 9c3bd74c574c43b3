"""One call, prepared: what the agent is asked, where, and from which checkpoint."""

from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from activities._fence import Fence, own_key, own_lease
from activities._pipeline import pipeline_note, summary_for_new_session
from activities._room import Host, read_papers
from septet.agents.clis.adapter import Turn
from septet.agents.clis.registry import adapter_for
from septet.agents.turns.launch import TurnRequest
from septet.answers.finalizer import finalizer_prompt
from septet.answers.steps import request_schema_of
from septet.commands.loader import load
from septet.commands.prompt import prompt, step_note
from septet.commands.values import values
from septet.contracts.names import Step
from septet.contracts.steps import FinalizeCall, StepCall
from septet.errors import WorkspaceError
from septet.git.evidence import Evidence
from septet.git.place import Place
from septet.git.snapshots.scan import WorktreeScan
from septet.git.snapshots.vault import list_snapshots, vault_at
from septet.repository_settings import RepositorySettings, load_repository_settings

A = TypeVar("A")


@dataclass(frozen=True, slots=True)
class PreparedStep:
    """One call, prepared."""

    call: StepCall
    place: Place
    settings: RepositorySettings
    request: TurnRequest
    starts_from: str
    """The checkpoint to return to, before an agent begins anew; empty where the history names none."""
    gate: Fence

    @property
    def began_at(self) -> str:
        """The commit that the work order began from: what differs from it is its work."""
        return self.call.workspace.began_at or self.place.base_sha


@dataclass(frozen=True, slots=True)
class Claim(Generic[A]):
    """What an agent says it has done, beside what git says."""

    call: StepCall
    place: Place
    answer: A
    evidence: Evidence
    settings: RepositorySettings
    gate: Fence
    """To be checked right before each effect."""
    toured: WorktreeScan | None = None
    """The walk over the worktree that the evidence is from."""

    @property
    def began_at(self) -> str:
        """The commit that the work order began from: what differs from it is its work."""
        return self.call.workspace.began_at or self.place.base_sha


def prepare_step(host: Host, call: StepCall) -> PreparedStep:
    """Find the place, read the papers, fill the command, and be the last attempt from here on.

    Raises:
        SupersededError: A later attempt has begun.
        NotFoundError, WorkspaceError: The workspace is not on this host, or was not opened to the end.
        CommandError, RepositorySettingsError: What the repository gives cannot be used.
    """
    place = host.place(call.workspace.place_id)
    _see_that_it_stands(place)
    papers = read_papers(place)
    wishes = load_repository_settings(papers.read)
    command = load(call.step, call.progress.issue_class, papers.read)
    filled = values(call.step, call.workspace, call.progress, papers.issue)
    stays = bool(call.pipeline) and host.keeps_process(call.workspace.agent)
    turn = Turn(
        prompt=prompt(command, filled, pipeline_note(host.state, call), step_note(call.reasons, call.attempt)),
        worktree=place.worktree,
        for_new_session=summary_for_new_session(host.state, call),
        resume_id=call.session_id,
        warm=stays,
        schema=request_schema_of(call.step, in_pipeline=bool(call.pipeline)),
        tools=wishes.tools_for(call.step, call.settings, one_process=stays),
        model=wishes.model_for(call.step, call.model or host.settings.model, call.settings),
    )
    request = _request(host, call, wishes, turn, call.step.value)
    gate = Fence(own_lease(request.means.runs, call.workspace.place_id, call.workspace.visit))
    return PreparedStep(call, place, wishes, request, call.starts_from, gate)


def finalizer_errand(host: Host, asked: FinalizeCall) -> PreparedStep:
    """Ask for the answer alone: the same session, no tools, and what was wrong.

    Raises:
        NotFoundError, WorkspaceError: The workspace is not on this host, or was not opened to the end.
    """
    call = asked.call
    place = host.place(call.workspace.place_id)
    wishes = load_repository_settings(read_papers(place).read)
    turn = Turn(
        prompt=finalizer_prompt(call.step, asked.reasons, asked.attempt, in_pipeline=bool(call.pipeline)),
        worktree=place.worktree,
        resume_id=asked.session_id,
        about_session=True,
        schema=request_schema_of(call.step, in_pipeline=bool(call.pipeline)),
        tools="none",
        model=wishes.model_for(call.step, call.model or host.settings.model, call.settings),
    )
    request = _request(host, call, wishes, turn, _finalizer_of(call.step))
    gate = Fence(own_lease(request.means.runs, call.workspace.place_id, call.workspace.visit))
    return PreparedStep(call, place, wishes, request, asked.result.checkpoint or "", gate)


def ending_errand(host: Host, call: StepCall) -> PreparedStep:
    """Look after the last agent of a step that was cancelled, whichever attempt or finalizer started it.

    Raises:
        SupersededError: A later attempt has begun.
        NotFoundError, WorkspaceError: The workspace is not on this host, or was not opened to the end.
    """
    errand = prepare_step(host, call)
    records = [run.record for run in host.means.runs.of(errand.request.order_id) if run.record is not None]
    ours = [record for record in records if record.step in {call.step.value, _finalizer_of(call.step)}]
    return replace(errand, request=replace(errand.request, key=ours[-1].key)) if ours else errand


def _see_that_it_stands(place: Place) -> None:
    """Refuse to work in a workspace that the janitor has removed.

    Raises:
        WorkspaceError: It is gone; the message names its last snapshot.
    """
    if place.worktree.exists():
        return
    last = list_snapshots(vault_at(place), place.order_id)[-1:]
    kept = f"its last state is snapshot {last[0].name}" if last else "no snapshot of it is left"
    raise WorkspaceError(
        f"{place.worktree} was removed: {kept}.",
        remedy="`septet rescue restore SNAPSHOT --to DIR` gives it back; begin a new work order with it.",
    )


def _request(host: Host, call: StepCall, wishes: RepositorySettings, turn: Turn, name: str) -> TurnRequest:
    return TurnRequest(
        key=own_key(),
        order_id=call.workspace.place_id,
        number=call.step.number,
        step=name,
        adapter=adapter_for(call.workspace.agent),
        turn=turn,
        limits=wishes.limits_for(call.step, call.limits, call.settings),
        means=host.means,
    )


def _finalizer_of(step: Step) -> str:
    return f"{step.value}-finalizer"


AnyClaim = Claim[Any]
