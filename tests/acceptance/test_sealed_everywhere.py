"""What a Temporal server can read of each workflow of a sealed installation, for each way that people's words take."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from fakes.forges.github import GitHubFake
from fakes.forges.serving import serving_forge
from fakes.forges.state import PullState
from fakes.listening import QuietHandler, listening
from fakes.mcp_client import tools_of
from fakes.repositories import git, make_origin
from fakes.sealed import cookie_of, database, payloads_in, payloads_of, sealed_machine, ui_of, words_in
from fakes.septet_command import WITHIN_SECONDS, Running, Septet
from fakes.waiting import until, wait_until
from fakes.webhooks import SECRET, GitHubWebhook
from temporalio.api.common.v1 import Payload
from temporalio.client import Client

from septet.contracts.seal import is_sealed

pytestmark = [pytest.mark.faces, pytest.mark.release]

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


TYPES = {
    "WorkOrder", "PullRequest", "Notification", "Board", "Pipeline", "Intake", "CommentCommand", "Account", "Costs",
}  # fmt: skip
ON_THE_FORGE_ALONE = {WORDS["log"], WORDS["review"]}
"""An agent's texts of a failed check and of a review: the host reads them from the forge, and no workflow has them."""
UI = "/api/v1/namespaces/default"


@dataclass(frozen=True)
class Seen:
    """What a client without keys can read on a server."""

    types: set[str]
    clear: dict[str, int]
    """The number of unsealed payloads, by the type of their workflow."""
    places: Mapping[str, str]
    """All readable text, by its place."""

    @property
    def words(self) -> dict[str, set[str]]:
        return {place: words_in(text, WORDS.values()) for place, text in self.places.items()}


def is_clear(payload: Payload) -> bool:
    """Say whether a payload has readable data; the server returns an absent payload as an empty one."""
    return bool(payload.data) and not is_sealed(payload.metadata)


async def types_on(up: Running) -> set[str]:
    client = await Client.connect(up.address)
    return {row.workflow_type async for row in client.list_workflows("")}


async def look(up: Running) -> Seen:
    """Read all histories, descriptions and schedules, and the web UI's answers."""
    client = await Client.connect(up.address)
    rows = [row async for row in client.list_workflows("")]
    histories, descriptions, clear = [], [], dict.fromkeys((row.workflow_type for row in rows), 0)
    headers = {"Cookie": cookie_of(up)}
    async with httpx.AsyncClient(base_url=ui_of(up), headers=headers, trust_env=False, timeout=60) as ui:
        shown = [(await ui.get(f"{UI}/{path}")).text for path in ("workflows", "schedules")]
        for row in rows:
            handle = client.get_workflow_handle(row.id, run_id=row.run_id)
            history, described = await handle.fetch_history(), (await handle.describe()).raw_description
            payloads = [*payloads_in(history), *payloads_of(described)]
            clear[row.workflow_type] += sum(map(is_clear, payloads))
            histories.append(history.to_json())
            descriptions.append(str(described))
            shown.append((await ui.get(f"{UI}/workflows/{row.id}/history?execution.runId={row.run_id}")).text)
    schedules = [
        (await client.get_schedule_handle(each.id).describe()).raw_description
        async for each in await client.list_schedules()
    ]
    clear["schedules"] = sum(is_clear(each) for told in schedules for each in payloads_of(told))
    places = {
        "histories": "".join(histories),
        "descriptions": "".join(descriptions),
        "schedules": "".join(map(str, schedules)),
        "the UI": "".join(shown),
    }
    return Seen({row.workflow_type for row in rows}, clear, places)


async def live_through(day: Day) -> Seen:
    """Use each way once, with a change of the build in between, and return what the server can read."""
    with day.septet.up(SEPTET_BUILD_ID="of-yesterday") as first:
        day.begin()
        assert first.end() == 0
        with day.septet.up() as up:
            day.promote()
            day.start_pipeline()
            day.take_in(up.api)
            day.go_on()
            tools_log = await day.use_tools()
            day.until_pipeline_ended()
            await wait_until(lambda: types_on(up), lambda types: types >= TYPES)
            seen = await look(up)
    log = "".join((*first.errors, *up.errors, tools_log))
    files = {"the database": database(day.septet.state), "logs": log}
    server_log = (day.septet.state / "server.log").read_text(encoding="utf-8")
    return Seen(seen.types, seen.clear, {**seen.places, **files, "the server's log": server_log})


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("is_sealed_here", [True, False], ids=["sealed", "open"])
async def test_no_way_in_leaves_a_word_on_the_server(tmp_path: Path, *, is_sealed_here: bool) -> None:
    """With keys no payload of a workflow is clear and no word is found; without keys each word is found."""
    machine = sealed_machine(tmp_path / "machine") if is_sealed_here else Septet(tmp_path / "machine")
    with serving_day(machine, tmp_path) as day:
        seen = await live_through(day)
    if is_sealed_here:
        assert {kind: count for kind, count in seen.clear.items() if count} == {}
        assert seen.words == {place: set() for place in seen.places}
        return
    assert all(seen.clear[kind] for kind in TYPES), seen.clear
    for place in ("histories", "the database"):
        assert set(WORDS.values()) - seen.words[place] == ON_THE_FORGE_ALONE
    assert WORDS["answer"] in seen.words["logs"]
