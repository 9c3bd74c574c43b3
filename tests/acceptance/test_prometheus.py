"""Each alert is caused on a real system, fires in a real Prometheus, and clears after its cause."""

import re
import shlex
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from fakes.forges.github import GitHubFake
from fakes.forges.serving import serving_forge
from fakes.forges.state import Fault
from fakes.prometheus_server import LONGEST_SECONDS, RULES, Prometheus, prometheus
from fakes.repositories import Origin, git
from fakes.septet_command import Ended, Septet, free_port, free_ports
from fakes.shared_server import Host
from fakes.waiting import until

import workflows

pytestmark = [pytest.mark.faces, pytest.mark.release, pytest.mark.timeout(900)]

OF_AGENTS: Final = {
    "SeptetStepsFail", "SeptetAnswersUnread", "SeptetAgentsRestart", "SeptetRescuesPileUp", "SeptetCostHigh",
    "SeptetProxyRefuses",
}  # fmt: skip
ABOUT_WORK: Final = OF_AGENTS | {
    "SeptetBudgetNearlyUsedUp", "SeptetBudgetUsedUp", "SeptetForgeFails", "SeptetForgeLimited",
}  # fmt: skip
ABOUT_WAITS: Final = {"SeptetQueueLong", "SeptetSeatsShort", "SeptetWorkerDown", "SeptetNobodyWorks"}
ABOUT_SERVERS: Final = {"SeptetWorkflowTasksFail", "SeptetServerRequestsFail"}
SCALING: Final = Path(__file__).parents[2] / "deploy" / "kubernetes" / "keda" / "scaling.yaml"
RUNBOOK: Final = (Path(__file__).parents[2] / "docs" / "operations" / "runbook.md").read_text(encoding="utf-8")
HALF: Final = {"half.txt": "half done\n"}
CRASH: Final = {"edits": HALF, "crash_after_edits": 1}
NO_PLAN: Final = {"edits": HALF, "put_over": {"plan_path": "specs/nowhere.md"}}
ASK: Final = """\
import urllib.request
for number in range(11):
    try:
        urllib.request.urlopen(f"https://n{number}.example/", timeout=20)
    except OSError as error:
        print(error)
"""


def summaries() -> dict[str, str]:
    """Return the template of each alert's summary, by the alert's name."""
    groups = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    rules = (rule for group in groups for rule in group["rules"] if "alert" in rule)
    return {rule["alert"]: rule["annotations"]["summary"] for rule in rules}


def agents_at_work(host: Host) -> str:
    """Return KEDA's query to Prometheus, for a host's own queues."""
    trigger, _ = yaml.safe_load(SCALING.read_text(encoding="utf-8"))["spec"]["triggers"]
    query: str = trigger["metadata"]["query"]
    return query.replace('"septet-', f'"{host.queue}-')


def first_commands(alert: str) -> list[str]:
    """Return the runbook's first commands for an alert."""
    row = re.search(rf"^\| `{alert}` \| (.*) \|$", RUNBOOK, re.MULTILINE)
    assert row is not None
    return re.findall(r"`((?:septet|temporal) [^`]+)`", row[1])


@dataclass
class Operator:
    """A person whom alerts wake, and who types the runbook's commands on a host."""

    prometheus: Prometheus
    host: Host
    alerts: set[str] = field(default_factory=set)
    """The alerts that fired."""

    def is_woken(self, *alerts: str) -> None:
        """Wait until alerts have fired, and check their labels and summaries."""
        for alert, told in self.prometheus.until_fired(*alerts).items():
            labels = re.findall(r"\$labels\.(\w+)", summaries()[alert])
            assert all(told["labels"].get(label) for label in labels), told
            assert not {"<", "{"} & {*told["annotations"]["summary"]}, told
            self.alerts.add(alert)

    def types(self, alert: str, *codes: int, **words: str) -> str:
        """Type the runbook's first commands for an alert, and return their output.

        Args:
            alert: The alert's name.
            codes: The expected exit code of each command; by default all are 0.
            words: The values of the capitals in the runbook, such as `ID`.
        """
        typed = [self._type(line, words) for line in first_commands(alert)]
        assert [ended.code for ended in typed] == [*(codes or [0] * len(typed))], typed
        return "\n".join(ended.out + ended.err for ended in typed)

    def _type(self, line: str, words: dict[str, str]) -> Ended:
        program, *args = (words.get(word, word) for word in shlex.split(line))
        ended: Ended = self.host.septet(*args) if program == "septet" else self.host.temporal(*args)
        return ended


def test_alerts_about_agents_costs_and_forges(host: Host, origin: Origin, tmp_path: Path) -> None:
    """Agents crash, make false claims, cost much, answer unreadably and request strange hosts; a forge fails.

    Prometheus starts after the agents' work is counted, and takes it for the first hour's, however slow a
    machine is.
    """
    metrics = f"127.0.0.1:{free_port()}"
    origin.push({"ask.py": ASK, ".septet/septet.toml": 'checks = [["python3", "ask.py"]]\n'})
    with _forge(tmp_path, origin) as forge:
        repository, project = f"{forge.url}/{forge.project}.git", f"project/{forge.project}"
        settings = {
            "SEPTET_GITHUB_HOSTS": forge.url.removeprefix("http://"),
            "SEPTET_GITHUB_API_URL": forge.url,
            "SEPTET_GITHUB_TOKEN": forge.token,
            "SEPTET_LOOK_SECONDS": "0.2",
            "SEPTET_LONGEST_LOOK_SECONDS": "0.5",
            "SEPTET_MAX_AGENTS": "3",
        }
        host = replace(host, septet=replace(host.septet, extra={**host.septet.extra, **settings}))
        septet = host.septet
        with host.worker(SEPTET_METRICS=metrics):
            assert septet("budget", "set", project, "1000usd").code == 0
            septet.scenario("wo-forge", {"cost_usd": 1.0})
            host.start(origin, "wo-forge", repository=repository)
            for number in range(8):
                host.scenario(f"wo-no-plan-{number}", build_plan=NO_PLAN)
                host.start(origin, f"wo-no-plan-{number}")
            for number in range(2):
                host.scenario(f"wo-crash-{number}", **{"*": [CRASH, CRASH, {"malformed": "truncated"}]})
                host.start(origin, f"wo-crash-{number}")
            for order in (*(f"wo-no-plan-{number}" for number in range(8)), "wo-crash-0", "wo-crash-1"):
                septet.closed(order, LONGEST_SECONDS)
            septet.wait_for_order("wo-forge", "review", LONGEST_SECONDS)
            _go_on_to_implement(host, origin, "wo-cost", {"cost_usd": 10.0})

            with prometheus(tmp_path / "prometheus", metrics) as seen:
                operator = Operator(seen, host)
                operator.is_woken(*OF_AGENTS)
                assert "wo-no-plan-0" in operator.types("SeptetStepsFail", ID="wo-no-plan-0")
                operator.types("SeptetAgentsRestart", ID="wo-crash-0")
                operator.types("SeptetAnswersUnread", ID="wo-crash-0")
                assert "wo-crash-0" in operator.types("SeptetRescuesPileUp")
                assert "n10.example" in operator.types("SeptetProxyRefuses", ID="wo-forge")
                operator.types("SeptetCostHigh", ID="wo-cost")
                assert septet.closed("wo-cost")["status"] == "cancelled"

                septet.scenario("wo-budget", {"cost_usd": 0.01})
                host.start(origin, "wo-budget", budget="0.03usd")
                operator.is_woken("SeptetBudgetUsedUp")
                assert "wo-budget" in operator.types("SeptetBudgetUsedUp", BUDGET="wo-budget")

                with forge.lock:
                    forge.faults.append(Fault(status=503, times=1_000_000))
                operator.is_woken("SeptetForgeFails")
                assert "503" in operator.types("SeptetForgeFails", 1, R=repository)
                with forge.lock:
                    forge.faults.clear()
                seen.until_clear("SeptetForgeFails")

                shown = septet("budget", "show", project, "--json").json["budget"]
                assert septet("budget", "set", project, f"{shown['spent']['usd'] / 0.9:.2f}usd").code == 0
                operator.is_woken("SeptetBudgetNearlyUsedUp")
                operator.types("SeptetBudgetNearlyUsedUp", BUDGET=project)
                assert septet("budget", "set", project, "none").code == 0

                with forge.lock:
                    forge.faults.append(Fault(status=429, headers={"Retry-After": "700"}))
                operator.is_woken("SeptetForgeLimited")
                assert operator.alerts == ABOUT_WORK
                for alert in ABOUT_WORK:
                    seen.until_clear(alert)


def test_alerts_about_waits_and_a_worker_that_is_down(host: Host, origin: Origin, tmp_path: Path) -> None:
    """A host with one slot and one seat has more work orders than that, and then has no worker."""
    metrics = f"127.0.0.1:{free_port()}"
    small = {"SEPTET_METRICS": metrics, "SEPTET_MAX_AGENTS": "1", "SEPTET_HOST_LIMIT": "1"}
    with prometheus(tmp_path / "prometheus", metrics) as seen:
        operator, septet = Operator(seen, host), host.septet
        with host.worker(**small):
            orders = [f"wo-slot-{number}" for number in range(3)]
            for order in orders:
                host.scenario(order, **{"*": {"delay_seconds": 3}})
                host.start(origin, order)
            operator.is_woken("SeptetQueueLong")
            operator.types("SeptetQueueLong")
            until(lambda: seen.value(agents_at_work(host)) == 1)
            for order in orders:
                septet.cancelled(order)

            for number in range(3):
                order = f"wo-seat-{number}"
                host.scenario(order, classify_issue={"delay_seconds": 8})
                assert septet("create", "--repo", origin.bare, "--title", "T", "--id", order).code == 0
                assert septet("move", order, "triaged").code == 0
            operator.is_woken("SeptetSeatsShort")
            operator.types("SeptetSeatsShort")
            seen.until_clear("SeptetQueueLong")
            septet.closed("wo-seat-2")
            _go_on_to_implement(host, origin, "wo-left", {})
        operator.is_woken("SeptetWorkerDown", "SeptetNobodyWorks")
        assert "workers: " in operator.types("SeptetNobodyWorks")
        assert operator.alerts == ABOUT_WAITS
        other = replace(host, septet=replace(septet, root=tmp_path / "other"))
        with other.worker():
            host_id = (septet.state / "host-id").read_text(encoding="ascii").strip()
            assert "wo-left" in operator.types("SeptetWorkerDown", HOST=host_id)
            with host.worker(**small):
                for alert in ABOUT_WAITS:
                    seen.until_clear(alert)
                septet.cancelled("wo-left")


def test_alerts_about_a_release_and_the_server(septet: Septet, origin: Origin, tmp_path: Path) -> None:
    """A release swaps two steps without a patch for running work orders, and a server is away."""
    metrics = [f"127.0.0.1:{free_port()}" for _ in range(2)]
    options = ("--port", "--ui-port", "--api-port")
    up = ("up", *(part for pair in zip(options, map(str, free_ports(3)), strict=True) for part in pair))
    with prometheus(tmp_path / "prometheus", *metrics) as seen, septet.serving(*up) as server:
        host = Host.at(server.address, tmp_path / "host")
        host.septet.shares = septet
        operator, careless = Operator(seen, host), _swap_two_steps(tmp_path / "careless")
        with host.worker(SEPTET_METRICS=metrics[0], SEPTET_BUILD_ID="one"):
            assert host.septet("promote", "one").code == 0
            go = host.scenario("wo-1", build_plan={"waits": True})
            host.start(origin, "wo-1")
            host.run_of("wo-1", "2-build_plan-1")
            with host.septet.beside(
                "worker", SEPTET_METRICS=metrics[1], SEPTET_BUILD_ID="two", PYTHONPATH=str(careless)
            ):
                assert host.septet("promote", "two").code == 0
                go.touch()
                operator.is_woken("SeptetWorkflowTasksFail")
                assert "stuck" in operator.types("SeptetWorkflowTasksFail", ID="wo-1", EARLIER_BUILD="one")
                seen.until_clear("SeptetWorkflowTasksFail")
            assert host.septet.closed("wo-1")["status"] == "completed"

            server.end()
            operator.is_woken("SeptetServerRequestsFail")
            operator.types("SeptetServerRequestsFail", 1)
            assert operator.alerts == ABOUT_SERVERS
            with septet.serving(*up):
                seen.until_clear("SeptetServerRequestsFail")


def test_each_alert_is_among_those_that_are_caused() -> None:
    """Each alert is in the sets of alerts that the tests above cause."""
    assert {*summaries()} == ABOUT_WORK | ABOUT_WAITS | ABOUT_SERVERS


@contextmanager
def _forge(folder: Path, origin: Origin) -> Iterator[GitHubFake]:
    """Serve GitHub with a copy of a repository while the block lasts."""
    bare = folder / "hosted" / "o" / "foo.js.git"
    bare.parent.mkdir(parents=True)
    git(folder, "clone", "-q", "--bare", str(origin.bare), str(bare))
    with serving_forge(GitHubFake(repositories=folder / "hosted")) as forge:
        yield forge


def _go_on_to_implement(host: Host, origin: Origin, order: str, scenario: Mapping[str, Any]) -> None:
    """Start a work order whose agent works at `implement_plan` until the test ends the work."""
    waits = {"implement_plan": {"wait_for": str(host.septet.root / "never")}}
    host.septet.scenario(order, {**scenario, "steps": waits})
    host.start(origin, order)
    host.septet.wait_for_order(order, "executing", LONGEST_SECONDS)
    host.run_of(order, "5-implement_plan-1")


def _swap_two_steps(packages: Path) -> Path:
    """Copy the workflows with planning before classifying, as of another release."""
    shutil.copytree(Path(workflows.__file__).parent, packages / "workflows")
    module = packages / "workflows" / "work_order" / "workflow.py"
    text, both = (
        module.read_text(encoding="utf-8"),
        "await self._take(Step.{})\n        await self._take(Step.{})\n",
    )
    steps = ("CLASSIFY_ISSUE", "BUILD_PLAN")
    swapped = text.replace(both.format(*steps), both.format(*reversed(steps)))
    assert swapped != text
    module.write_text(swapped, encoding="utf-8")
    return packages
