"""A day of an installation with people's words from every source, each with a word to search for."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fakes.forges.github import GitHubFake
from fakes.forges.serving import serving_forge
from fakes.forges.state import PullState
from fakes.listening import QuietHandler, listening
from fakes.mcp_client import tools_of
from fakes.repositories import git, make_origin
from fakes.septet_command import WITHIN_SECONDS, Septet
from fakes.waiting import until
from fakes.webhooks import SECRET, GitHubWebhook

WAYS = (
    "api", "why", "feedback", "plan", "answer", "log", "review", "pipeline", "labelled", "comment", "tool", "pass",
)  # fmt: skip
WORDS = {way: f"canary{way}51c8" for way in WAYS}
"""The word by its source: over HTTP, with a cancel, as feedback on a plan, in a plan, from an agent, and so on."""
ORDER = "wo-api"
A_CENT_A_MESSAGE = {"cost_usd": 0.01, "tokens": {"input_tokens": 9, "output_tokens": 1}}
FILES = {"README.md": "# app\n", "app.py": "print('hello')\n"}


@dataclass
class Day:
    """A machine, a forge that sends it issues, and a receiver of notifications."""

    septet: Septet
    forge: GitHubFake
    folder: Path

    @property
    def repository(self) -> str:
        return f"{self.forge.url}/{self.forge.project}.git"

    def begin(self) -> None:
        """Start a work order over HTTP that waits for its budget; raise the budget, and reject its first plan."""
        said = {"build_plan": WORDS["plan"], "implement_plan": WORDS["answer"]}
        steps = {step: {"put_over": {"summary": word}} for step, word in said.items()}
        self.septet.scenario(ORDER, {**A_CENT_A_MESSAGE, "steps": steps})
        order = {
            "id": ORDER, "repository_url": self.repository, "title": f"Say {WORDS['api']}", "approve_plan": True,
            "follow_pr": True, "budget": "0.01usd", "description": "The app greets only.",
        }  # fmt: skip
        with self.septet.api as api:
            assert (answer := api.post("/agent-work-orders", json=order)).status_code == 201, answer.text
        self.septet.wait_for_order(ORDER, lambda task: task["budget"])
        assert self.septet("budget", "raise", ORDER, "5usd", "--json").code == 0
        self._until_plan(1)
        rejected = self.septet("reject", ORDER, "--feedback", f"Rather {WORDS['feedback']}.", "--json")
        assert rejected.code == 0, rejected
        self._until_plan(2)

    def promote(self) -> None:
        promoted = self.septet("promote", "--json")
        assert promoted.code == 0, promoted

    def go_on(self) -> None:
        """Approve the plan under another build, and let the agent answer a failed check and a review."""
        assert self.septet("approve", ORDER, "--json").code == 0
        self.septet.wait_for_order(ORDER, "review")
        pull = next(pull for pull in self.forge.pulls.values() if ORDER in pull.body)
        head = self.forge.sha(pull)
        with self.forge.lock:
            self.forge.add_review(pull.number, "ada", "changes_requested", f"Rather {WORDS['review']}.")
            self.forge.logs["tests"] = f"E: {WORDS['log']}. Write `bye` into `farewell.txt`."
            self.forge.statuses[head] = [("tests", "failure")]
        self._until_reworked(pull, head)

    def _until_reworked(self, pull: PullState, head: str) -> None:
        until(lambda: self.forge.sha(pull) != head)
        self.septet.wait_for_order(ORDER, "review")
        self.forge.end_pull(pull.number, "merged")
        self.septet.wait_for_order(ORDER, "done")

    def take_in(self, api: str) -> None:
        """Let an intake take an issue by a webhook and another issue by a pass, and answer a comment."""
        added = self.septet("intake", "add", "--repo", self.repository, "--at-once", "--every", "86400", "--json")
        assert added.code == 0, added
        hook = GitHubWebhook(self.forge, SECRET)
        issue = self.forge.add_issue(f"Totals {WORDS['labelled']}", labels=("septet",))
        assert hook.labelled(issue).send(api).status_code in {200, 202}
        assert hook.commented(issue, f"/septet dance {WORDS['comment']}").send(api).status_code == 202
        self._wait_for_title(WORDS["labelled"])
        until(lambda: any(note.author == "septet" for note in self.forge.issues[issue].notes))
        self.forge.add_issue(f"Totals {WORDS['pass']}", labels=("septet",))
        begun = self.septet.temporal("schedule", "trigger", "--schedule-id", added.json["intake"]["id"])
        assert begun.code == 0, begun
        self._wait_for_title(WORDS["pass"])
        assert self.septet("intake", "remove", added.json["intake"]["id"], "--json").code == 0

    def start_pipeline(self) -> None:
        file = self.folder / "issues.json"
        issue = {"id": "a", "title": f"Say {WORDS['pipeline']}", "body": "The app greets only."}
        file.write_text(json.dumps([issue]), encoding="utf-8")
        begun = self.septet("pipeline", "--repo", self.repository, "--file", file, "--id", "pl-a", "--json")
        assert begun.code == 0, begun

    def until_pipeline_ended(self) -> None:
        self.septet.wait_for_pipeline("pl-a", "completed", 2 * WITHIN_SECONDS)

    async def use_tools(self) -> str:
        async with tools_of(self.septet, self.folder / "mcp.log") as tools:
            await tools("create_task", repository=self.repository, title=f"Say {WORDS['tool']}", id="wo-tool")
            await tools("cancel", id="wo-tool", why=f"It is {WORDS['why']}.")
        return (self.folder / "mcp.log").read_text(encoding="utf-8")

    def _until_plan(self, number: int) -> None:
        def is_waiting(task: dict[str, Any]) -> bool:
            plans = sum("build_plan" in run for run in self.septet.runs(ORDER))
            return plans == number and task["status"] == "waiting"

        self.septet.wait_for_order(ORDER, is_waiting)

    def _wait_for_title(self, word: str) -> None:
        self.septet.wait_for("/agent-work-orders", lambda rows: [row for row in rows if word in row["title"]])


@contextmanager
def serving_day(machine: Septet, folder: Path) -> Iterator[Day]:
    made = make_origin(folder / "made", "foo.git")
    made.push(FILES)
    bare = folder / "hosted" / "o" / "foo.js.git"
    bare.parent.mkdir(parents=True)
    git(folder, "clone", "-q", "--bare", str(made.bare), str(bare))
    with serving_forge(GitHubFake(repositories=folder / "hosted")) as forge, _receiver() as address:
        extra = {
            **forge.settings,
            "SEPTET_GITHUB_WEBHOOK_SECRET": SECRET,
            "SEPTET_LOOK_SECONDS": "0.2",
            "SEPTET_NOTIFY_URL": address,
            "SEPTET_NOTIFY_SECRET": "of this day alone",
            "SEPTET_LOG_LEVEL": "debug",
        }
        yield Day(Septet(machine.root, {**machine.extra, **extra}), forge, folder)


@contextmanager
def _receiver() -> Iterator[str]:
    class Handler(QuietHandler):
        def handle_any(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.answer(204, {})

    with listening(Handler) as address:
        yield f"{address}/hook"
