"""The sessions that a work order's steps share, where it is so chosen: the planner's, and the implementor's."""

from septet.contracts.lanes import Role
from septet.contracts.names import Step
from septet.contracts.steps import StepCall, StepResult


class RoleSessions:
    """With which session the next step of a role goes on. In a pipeline lanes know that."""

    def __init__(self) -> None:
        """Begin without any."""
        self._sessions: dict[Role, str] = {}

    def session_of(self, step: Step) -> str | None:
        """Return the session that a step continues; `None` for a new session."""
        return self._sessions.get(_role_of(step))

    def follow(self, call: StepCall, result: StepResult) -> None:
        """Go on with the session in which the agent answered last, where steps share one."""
        if call.shares_session and not call.pipeline and result.session_id is not None:
            self._sessions[_role_of(call.step)] = result.session_id

    def forget(self) -> None:
        """Begin new ones: after a reset they know what the worktree does not hold."""
        self._sessions.clear()


def _role_of(step: Step) -> Role:
    return Role.PLANNER if step.number <= Step.FIND_PLAN_FILE.number else Role.EXECUTOR
