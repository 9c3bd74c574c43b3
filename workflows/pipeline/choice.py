"""Which issues of a pipeline get a work order now."""

from typing import ClassVar

from septet.contracts.pipeline_view import IssueState, IssueStatus
from workflows.pipeline.handlers import PipelineHandlers
from workflows.pipeline.window import Window, WindowLimits


class PipelineChoice(PipelineHandlers):
    """One pipeline, as far as it says which work orders are started."""

    window_limits: ClassVar[WindowLimits] = WindowLimits()

    def __init__(self) -> None:
        """Begin with an empty window."""
        super().__init__()
        self._window = Window(self.window_limits, self._note_news)

    @property
    def _is_under_way(self) -> bool:
        return not all(work.done() for work in self._order_tasks.values())

    def _next_issues(self) -> list[IssueState]:
        """Return the issues whose work orders are to be started now, in their order."""
        state, following = self._state, self._following_issues()
        if not following or state.is_stopping or (state.is_paused and self._order_tasks):
            self._window.end_patience()
            return []
        left = self._issues_left()
        in_turn = [issue for issue in left if not self._is_held_back(issue)]
        if left and not in_turn and not self._holders:
            self._window.go_on()
        room = self._window.room(len(in_turn), len(self._order_tasks))
        if room or not left or state.planner.id in self._holders or len(self._holders) == len(state.lanes):
            self._window.end_patience()
        else:
            self._window.begin_patience()
        return [issue for issue in following[:room] if issue.issue_id not in state.to_skip]

    def _issues_left(self) -> list[IssueState]:
        """Return the issues whose work orders are under way."""
        return [self._state.issues[name] for name, work in self._order_tasks.items() if not work.done()]

    def _following_issues(self) -> list[IssueState]:
        """Return the issues that have no work order in this run yet."""
        return [issue for issue in self._state.open_issues if issue.issue_id not in self._order_tasks]

    def _is_held_back(self, issue: IssueState) -> bool:
        """Say whether nothing happens to an issue before a person has moved it, or one that it depends on."""
        away = issue.status is IssueStatus.WAITING and issue.order_id in self._absent_orders
        return away or (issue.status is IssueStatus.PLANNED and issue.issue_id not in self._state.to_skip)
