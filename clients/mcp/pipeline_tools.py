"""The tools for pipelines: each docstring is what an agent reads before it chooses one."""

from typing import Annotated, ClassVar, Final, Self

from mcp.types import ToolAnnotations
from pydantic import Field, StringConstraints

from clients.mcp.call import ADDS, ENDS, Call
from clients.operations.operations import Operations
from clients.starting.repository_path import whole_path
from clients.temporal.pipelines import PipelineDecision
from septet.contracts.decisions import Who, Words
from septet.contracts.pipeline import PipelineInput
from septet.contracts.pipeline_replies import PipelineReply, PipelinesReply

_ROWS_AT_ONCE: Final = 20
Id = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._-]{1,40}$")]


class CreatePipeline(PipelineInput, Call):
    """Start work on many issues of one repository: one agent plans them ahead, others carry the plans out.

    Name the repository, and either `issues` (numbers of its forge, or objects with id, title, body and
    depends_on) or a `label` of its forge. Each issue becomes a task on the board, and gets its own pull request
    unless `one_branch` is set. It costs money and takes minutes: the answer is the pipeline as it starts, with an
    `estimate` of its cost. Look at it later with `get_pipeline`. Choose an `id` if you might call twice: a used id
    is refused.
    """

    tool: ClassVar[str] = "create_pipeline"
    hints: ClassVar[ToolAnnotations] = ADDS

    id: Id | None = None
    """The new pipeline's id; one is made when absent."""

    def from_here(self) -> Self:
        """Return it with the whole path of a repository that is on this machine."""
        return self.model_copy(update={"repository": whole_path(self.repository)})

    async def answer(self, operations: Operations) -> PipelineReply:
        """Start it."""
        order = PipelineInput(**{name: getattr(self, name) for name in PipelineInput.model_fields})
        return await operations.for_pipelines.start(order, self.id)


class GetPipeline(Call):
    """Look at one pipeline: the state of each issue, with its solution, commit, pull request and reason.

    `pipeline.status` is running, paused, stopping, completed, stopped, failed or cancelled. A completed one may
    have issues that failed or were skipped. `order_id` is its task: `task_detail` and `logs` tell more. While
    it is open, `estimate` is what the issues that have no result yet will cost.
    """

    tool: ClassVar[str] = "get_pipeline"

    id: Id
    """The pipeline's id, as `list_pipelines` and `create_pipeline` return it."""

    async def answer(self, operations: Operations) -> PipelineReply:
        """Look."""
        return await operations.for_pipelines.show(self.id)


class ListPipelines(Call):
    """See the pipelines, open ones first, each with the number of issues in each state.

    If there are more, the answer has `next`: call again with it as `after`.
    """

    tool: ClassVar[str] = "list_pipelines"

    after: str = ""
    """`next` from the previous page; omit it for the first."""
    limit: Annotated[int, Field(ge=1, le=500)] = _ROWS_AT_ONCE
    """The most pipelines to return."""

    async def answer(self, operations: Operations) -> PipelinesReply:
        """Look."""
        return await operations.pipelines.list(after=self.after, limit=self.limit)


class DecidePipeline(Call):
    """Decide about a pipeline, or about one of its issues.

    `pause`: nothing new starts until `resume`. `stop`: running issues are finished, and no others start. `cancel`:
    all agents are stopped now, and their work is kept. With `issue_id`, `skip`: leave out an issue that is not
    running, and those that depend on it; `replan`: plan an issue again before it is implemented, and tell the
    planner `why`.
    """

    tool: ClassVar[str] = "pipeline_decide"
    hints: ClassVar[ToolAnnotations] = ENDS

    id: Id
    """The pipeline's id."""
    decision: PipelineDecision
    issue_id: Annotated[str, StringConstraints(max_length=20)] = ""
    """The issue's id in the pipeline; only for `skip` and `replan`."""
    who: Who = ""
    """Who decides; this agent when absent."""
    why: Words = ""
    """The reason; for `replan`, your feedback for the planner."""

    async def answer(self, operations: Operations) -> PipelineReply:
        """Carry it out."""
        return await operations.pipelines.decide(self.id, self.decision, self.issue_id, self.who, self.why)


PIPELINE_TOOLS: Final[tuple[type[Call], ...]] = (CreatePipeline, GetPipeline, ListPipelines, DecidePipeline)
