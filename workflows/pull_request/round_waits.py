"""What a round on a pull request waits for: a budget, a person's decision on findings, or a host."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from septet.contracts.amounts import BudgetWait
from septet.contracts.facts import KeyFinding
from septet.contracts.task import Task, TaskError
from septet.system.text import timestamp


@dataclass
class RoundWaits:
    """Records what the running round waits for, and shows it in the task."""

    task: Task = field(default_factory=lambda: Task(id=""))
    """The task before the fields of the wait are added."""
    waited: timedelta = timedelta(0)
    error: TaskError | None = None
    """The error that names a gone host; `None` if the round does not wait for a host."""
    _shown_error: TaskError | None = None
    _budget: BudgetWait | None = None
    _findings: tuple[KeyFinding, ...] = ()
    _since: datetime | None = None

    def task_fields(self, order_id: str) -> dict[str, object]:
        """Return the fields of the task that show the wait; while a host is gone, they include the error."""
        fields: dict[str, object] = {"budget": self._budget, "findings": self._findings}
        if (self._budget is not None or self._findings) and self._since is not None:
            fields["updated_at"] = timestamp(self._since)
        if self.error is not None or self._shown_error is not None:
            fields["error"], self._shown_error = self.error and self.error.of(order_id), self.error
        return fields

    def end(self) -> None:
        """End the wait for a budget and for a person's decision."""
        self._budget, self._findings = None, ()

    def wait_for_decision(self, now: datetime) -> None:
        """Do nothing: a round has no plan that waits for a decision."""

    def wait_for_findings(self, findings: tuple[KeyFinding, ...], now: datetime) -> None:
        """Record the wait for a person's decision on findings."""
        self._findings, self._since = findings, self._since if self._findings else now

    def wait_for_budget(self, wait: BudgetWait, now: datetime) -> None:
        """Record the wait for a budget."""
        self._budget, self._since = wait, now

    def go_on(self, who: str, why: str, now: datetime) -> None:
        """Record the end of a wait for a budget or a person's decision."""
        del who, why
        self.waited += now - (self._since or now)
        self.end()

    def wait_for_host(self, error: TaskError, now: datetime) -> bool:
        """Record the wait for a gone host with its reason; return whether this changes the record."""
        del now
        is_news, self.error = self.error != error, error
        return is_news

    def end_wait_for_host(self, now: datetime) -> bool:
        """Record the end of a wait for a host; return whether such a wait was recorded."""
        del now
        was_waiting, self.error = self.error is not None, None
        return was_waiting

    def move_to_host(self, lost_host: str, host: str, now: datetime) -> bool:
        """Record that the round continues on another host; return true."""
        del lost_host, host, now
        self.error = None
        return True
