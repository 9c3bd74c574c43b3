"""Limits and leases use a clock that does not jump."""

import ast
from pathlib import Path

import pytest

from septet.agents.processes.order import Limits, Order
from septet.agents.supervisor.agent_run import Supervisor

ROOT = Path(__file__).resolve().parents[3]
WALL_CLOCKS = {
    "septet/agents/turns/launch.py": "when a run began, for people",
    "septet/agents/supervisor/agent_run.py": "when an agent began and ended, for people",
    "septet/agents/proxy/network_log.py": "when a guest asked for a host, for people",
    "septet/agents/supervisor/warm_process.py": "when a turn of an agent began, for people",
    "workers/recovery/strays.py": "whether a folder is so young that it may change within the same time; a jump only has it asked again",
    "septet/agents/runs/logins.py": "when a login expires: a jump has one agent refresh it early, or several at once",
    "septet/git/engine/packs.py": "how old a file is that a killed git left; what a vault drops also has to be unreachable, and a pass distrusts a jump",
    "septet/git/vault/pack.py": "when a commit was made, for people",
    "septet/git/snapshots/take.py": "when a snapshot was taken, for people and for the janitor",
    "septet/pipelines/store.py": "whether a file is so young that the next one may bear the same time; a jump only has it read again",
    "septet/git/evidence/evidence.py": "whether a file is so young that it may change within the same time; a jump only has git asked again",
    "septet/agents/guest/toolchains.py": "whether a folder is so young that it may change within the same time; a jump only has it looked at again",
    "activities/turns/logins.py": "a model's provider names the moment at which a login's limit begins anew",
    "activities/intake/new_commands.py": "from when on comments are asked for: the last days, and ids tell what was seen",
    "activities/turns/turn_costs.py": "in which week something was used, for people",
    "workers/watching/amount_metrics.py": "a pause of a login that is over counts as none, and a daily budget begins anew at midnight; a jump shows either a minute longer",
    "workers/watching/reports.py": "how old a note on disk is, and when the server was last asked, for a health check",
    "activities/turns/account_archive.py": "when an account was looked up, held against the server's clock: where they differ, it is looked up once more",
    "activities/workspaces/hosts.py": "ages of days, held against the server's clock and the last pass",
    "clients/cli/watch/view_commands.py": "in which week an age began, for people",
    "clients/temporal/costs.py": "in which week an age began, for people",
    "clients/cli/doctor/server_checks.py": "how far this machine's clock is from the server's",
    "clients/cli/terminal/serving.py": "when a service ended, for people",
    "clients/cli/start/demo.py": "a folder's name",
    "workers/builds/promotion.py": "whether a worker has asked for work in the last minutes: clocks that differ only have a promotion wait",
    "workers/watching/heard_hosts.py": "since when a host has been silent, for people: how long, the monotonic clock says",
    "workers/watching/pull_request_list.py": "how old a pull request is: the older, the more rarely it is looked at",
    "workers/watching/pull_request_polls.py": "how old a pull request and a delivery is, and since when the server is asked for new ones",
    "clients/executions/presence.py": "since when a worker has not been heard, for people",
    "septet/forges/issue_history.py": "when a command was commented, where its forge does not say",
    "clients/operations/absence.py": "since when a server has not answered, for people",
    "clients/operations/under_way.py": "how long a work order has taken, for people",
    "clients/temporal/work_orders.py": "when a work order was created, until its workflow says it by the server's clock",
    "clients/disk/rescues.py": "how old a snapshot is, for people",
    "activities/outgoing/send_notification.py": "when an event was signed, as its receiver expects it",
    "clients/cli/render/tables.py": "how old something is, for people",
    "clients/cli/serve/up.py": "which work orders are recent, and when a line was printed, for people",
    "clients/page/standing.py": "how old something is, for people",
    "clients/temporal/budgets.py": "what was used today of a budget, for people",
    "clients/temporal/board.py": "which work orders closed in the last days, for people",
    "septet/forges/github/app.py": "GitHub holds what an App proves itself with against its own clock",
    "septet/forges/local/issues.py": "when a comment was made, for people",
    "septet/forges/http/pauses.py": "a forge names the moment at which its limit ends",
    "septet/forges/gitlab/webhooks.py": "how old a signed delivery is: an old one is refused, and its forge sends it again",
    "septet/trackers/linear/api.py": "Linear names the moment at which its limit ends",
    "septet/trackers/linear/webhook.py": "how old a signed delivery is: an old one is refused, and Linear sends it again",
    "clients/temporal/deliveries.py": "how old a delivery is: one of days ago is not obeyed any more",
    "activities/intake/comment_commands.py": "how old a comment is: one of days ago is not obeyed any more",
    "clients/pipelines/client.py": "when a pipeline was asked for, until its workflow says it by the server's clock",
}
"""The use of the wall clock, by module. No limit, heartbeat or lease uses it."""


def _asks_wall_clock(module: Path) -> bool:
    return any(
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and (node.value.id, node.attr) in {("time", "time"), ("time", "time_ns"), ("datetime", "now")}
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8")))
    )


def test_only_what_people_read_asks_the_wall_clock() -> None:
    """A module that begins to read the wall clock states here why a clock that jumps does no harm."""
    packages = ("septet", "activities", "workflows", "workers", "clients")
    modules = [path for package in packages for path in sorted((ROOT / package).rglob("*.py"))]
    asking = {path.relative_to(ROOT).as_posix() for path in modules if _asks_wall_clock(path)}
    assert asking == set(WALL_CLOCKS)


class JumpedSupervisor(Supervisor):
    """A supervisor whose start, output and attachment happened at times that a test sets."""

    def __init__(self, order: Order) -> None:
        self.order = order
        self.outputs, self.printed_bytes, self.agent, self.status = [], 0, 0, None
        self.cause = self.why = ""
        self.clients = {}
        self.kill_at = self.give_up_at = self.look_at = float("inf")


@pytest.mark.parametrize(("ago", "cause"), [(599.0, ""), (601.0, "idle_limit"), (3601.0, "wall_limit")])
def test_a_supervisor_s_limits_count_from_the_monotonic_clock(ago: float, cause: str) -> None:
    """A limit is reached by the time that the monotonic clock measures, whatever the date is."""
    import time

    supervisor = JumpedSupervisor(
        Order(folder="/", directory="/", argv=("/bin/true",), env={}, limits=Limits(3600.0, 600.0))
    )
    supervisor.began_at = supervisor.printed_at = supervisor.attached_at = time.monotonic() - ago
    supervisor.hold_limits()
    assert supervisor.cause == cause
