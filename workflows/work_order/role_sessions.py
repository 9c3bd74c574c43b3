"""The sessions that a work order's steps share, if the input says so: the planner's and the implementor's."""

from septet.contracts.lanes import Role
from septet.contracts.names import Step
from septet.contracts.steps import StepCall, StepResult


class RoleSessions:
    """The session of each role's next step; a pipeline's lanes have their own."""

    def __init__(self) -> None:
        """Start without a session."""
        self._sessions: dict[Role, str] = {}

    def session_of(self, step: Step) -> str | None:
        """Return the session that a step continues; `None` for a new session."""
        return self._sessions.get(_role_of(step))

    def follow(self, call: StepCall, result: StepResult) -> None:
        """Record the session of the agent's last answer if steps share sessions."""
        if call.shares_session and not call.pipeline and result.session_id is not None:
            self._sessions[_role_of(call.step)] = result.session_id

    def forget(self) -> None:
        """Start new sessions: after a reset, an old session knows of work that the worktree does not have."""
        self._sessions.clear()


def _role_of(step: Step) -> Role:
    return Role.PLANNER if step.number <= Step.FIND_PLAN_FILE.number else Role.EXECUTOR
