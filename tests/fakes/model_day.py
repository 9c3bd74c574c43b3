"""A day of work for a real CLI: its connection to the model, the model's acts, and the visible outcome."""

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from fakes.model_stub import Fault, Model, Part
from fakes.waiting import wait_until

from clients.temporal.work_orders import WorkOrders
from septet.agents.runs.folders import Run, Runs
from septet.contracts.names import SandboxChoice, Sessions
from septet.contracts.order import Timeouts, WorkOrderInput
from septet.contracts.task import Task, TaskStep
from septet.sample import Sample

CLIS: Final = ("claude", "codex", "gemini", "copilot", "opencode")
ORDER_ID: Final = "wo-real"
PLAN: Final = "specs/issue-1-plan.md"
BRANCH: Final = "septet/bug-1-discount-from-ten"
_KEY: Final = "made-up"
MODELS: Final = {"gemini": "gemini-2.5-pro", "codex": "gpt-6.1-sol"}
_PATIENCE_SECONDS: Final = 240.0
_CODEX: Final = """\
model_provider = "stub"
model = "gpt-6.1-sol"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.stub]
name = "stub"
base_url = "{address}/v1"
env_key = "CODEX_API_KEY"
wire_api = "responses"
request_max_retries = 1
stream_max_retries = 1
"""


@dataclass
class Day:
    cli: str
    root: Path
    home: Path
    programs: Mapping[str, str]
    model: Model
    order_id: str = ORDER_ID
    sandbox: SandboxChoice = "bwrap"
    sandboxed: bool = True
    """The value of `SEPTET_SANDBOXED`: with it, CLIs switch their own sandboxes off."""
    sessions: Sessions | None = None
    read_outgoing: bool = False
    """Whether another agent reads outgoing work before the push."""
    second_key: str = ""
    """The key of a further login `second`; empty without such a login."""
    _seen: tuple[Sample, Runs] | None = None

    def goes_wrong(self, fault: Fault) -> None:
        self.model.faults.append(fault)

    def does(self, step: str, *commands: str) -> None:
        self.model.parts[step] = Part(self.model.parts[step].answer, commands)

    def reaches_its_limit(self, second_key: str) -> None:
        """Let the first login be at its usage limit, and add a second login with this key."""
        self.model.limited_key, self.second_key = _KEY, second_key

    def opened(self, sample: Sample, runs: Runs) -> None:
        self._seen = sample, runs

    @property
    def sample(self) -> Sample:
        assert self._seen is not None
        return self._seen[0]

    @property
    def runs(self) -> Runs:
        assert self._seen is not None
        return self._seen[1]

    def runs_of(self, step: str) -> list[Run]:
        runs = self.runs.of(self.order_id)
        return [run for run in runs if run.record is not None and run.record.step == step]

    async def start(self, orders: WorkOrders, **choices: Any) -> None:
        timeouts = Timeouts(wall_seconds=300, idle_seconds=150.0, turns=50)
        order = WorkOrderInput(
            repository=str(self.sample.origin),
            issue=self.sample.issue,
            agent=self.cli,
            model=MODELS.get(self.cli),
            timeouts=timeouts,
            sessions=self.sessions,
            **choices,
        )
        await orders.start(order, self.order_id)

    async def done(self, orders: WorkOrders, step: str) -> TaskStep:
        task = await self.until(
            orders, lambda task: any(told.step == step and told.success for told in task.steps)
        )
        await orders.cancel_and_wait(self.order_id)
        return next(told for told in task.steps if told.step == step)

    async def until(self, orders: WorkOrders, holds: Callable[[Task], bool]) -> Task:
        """Wait until `holds` is true of the work order, and fail if the work order ends before."""

        def holds_or_is_over(task: Task) -> bool:
            return holds(task) or task.status in {"completed", "failed", "cancelled"}

        task: Task = await wait_until(lambda: orders.get(self.order_id), holds_or_is_over, _PATIENCE_SECONDS)
        assert holds(task), f"it ended otherwise: {task.status}: {task.error}"
        return task

    async def appears(self, path: Path) -> None:
        await wait_until(path.exists, seconds=_PATIENCE_SECONDS)

    def environment(self, address: str) -> dict[str, str]:
        env = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "TMPDIR": str(self.root),
            "LANG": "C.UTF-8",
            **self.programs,
        }
        env |= _pointed(self.cli, address, self.home)
        if self.second_key:
            variables = {name: value for name, value in env.items() if _KEY in value}
            login = self.root / "second.env"
            lines = [f"{name}={value.replace(_KEY, self.second_key)}\n" for name, value in variables.items()]
            login.write_text("".join(lines), encoding="utf-8")
            env[f"SEPTET_{self.cli.upper()}_LOGINS"] = f"second={login}"
        return env


def day_of(cli: str, programs: Mapping[str, str], home: Path, root: Path) -> Day:
    return Day(cli, root, home, programs, Model(_parts()))


def _parts() -> dict[str, Part]:
    plan = f"mkdir -p specs && printf '# Plan\\n\\nThe discount begins at ten items.\\n' > {PLAN}"
    edit = "sed -i 's/quantity > BULK_QUANTITY/quantity >= BULK_QUANTITY/' shop/pricing.py"
    summary = {"summary": "Ten items get the discount.", "key_changes_made": ["shop/pricing.py"]}
    return {
        "classify_issue": Part({"issue_class": "/bug"}),
        "build_plan": Part({"plan_path": PLAN, "summary": "One comparison is wrong."}, (plan,)),
        "find_plan_file": Part({"plan_path": PLAN}),
        "generate_branch": Part({"branch_name": BRANCH}),
        "implement_plan": Part({"success": True, **summary, "key_learnings": []}, (edit,)),
        "create_commit": Part({"commit_message": "fix: give the discount from ten items on"}),
        "create_pull_request": Part({"title": "Give the discount from ten items on", "body": "Fixes issue 1."}),
        "read_outgoing": Part({"findings": []}),
    }


def _pointed(cli: str, address: str, home: Path) -> dict[str, str]:
    """Return the environment, and write the settings, with which a CLI uses the model at an address."""
    if cli == "claude":
        return {"ANTHROPIC_BASE_URL": address, "ANTHROPIC_API_KEY": _KEY}
    folder = home / f".{cli}"
    if cli == "codex":
        folder.mkdir(exist_ok=True)
        (folder / "config.toml").write_text(_CODEX.format(address=address), encoding="utf-8")
        return {"CODEX_HOME": str(folder), "CODEX_API_KEY": _KEY}
    if cli == "gemini":  # the address alone makes the CLI take a way of logging in that it then refuses
        folder.mkdir(exist_ok=True)
        chosen = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
        (folder / "settings.json").write_text(json.dumps(chosen), encoding="utf-8")
        return {"GOOGLE_GEMINI_BASE_URL": address, "GEMINI_API_KEY": _KEY}
    if cli == "copilot":
        return {
            "COPILOT_OFFLINE": "true",
            "COPILOT_PROVIDER_BASE_URL": f"{address}/v1",
            "COPILOT_PROVIDER_API_KEY": _KEY,
            "COPILOT_MODEL": "gpt-5.4",
        }
    limit = {"context": 200_000, "output": 8_000}
    provider: dict[str, Any] = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "stub",
        "options": {"baseURL": f"{address}/v1", "apiKey": _KEY},
        "models": {name: {"name": name, "limit": limit} for name in ("stub-model", "small-model", "big-model")},
    }
    models = {"model": "stub/stub-model", "small_model": "stub/stub-model", "enabled_providers": ["stub"]}
    return {"OPENCODE_CONFIG_CONTENT": json.dumps({**models, "provider": {"stub": provider}})}
