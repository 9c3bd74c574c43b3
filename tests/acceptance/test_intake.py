"""Issues become work orders by a schedule and by webhooks of forges, each issue once."""

import base64
import json
import os
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fakes.forges.gitea import GiteaFake
from fakes.forges.github import GitHubFake
from fakes.forges.gitlab import GitLabFake
from fakes.forges.serving import serving_forge
from fakes.forges.state import ForgeFake, now
from fakes.prometheus import scrape
from fakes.repositories import make_origin
from fakes.septet_command import Septet, free_port
from fakes.waiting import until, until_temporal
from fakes.webhooks import SECRET, WEBHOOKS, GitHubWebhook, Sent, Webhook

from septet.git.commits.issue_claims import IssueClaims
from septet.git.engine.remote import Remote

pytestmark = pytest.mark.faces
SECRETS = {"github": SECRET, "gitea": SECRET, "gitlab": "whsec_" + base64.b64encode(b"a key of GitLab's").decode()}


@dataclass
class Site:
    """A machine with `septet up`, and a forge that sends webhooks to it."""

    septet: Septet
    forge: ForgeFake
    api: str
    metrics: str

    def counted(self, metric: str, **labels: str) -> float:
        return scrape(self.metrics).total(metric, forge=self.forge.name, **labels)

    @property
    def repository(self) -> str:
        return f"{self.forge.url}/{self.forge.project}.git"

    @property
    def webhook(self) -> Webhook:
        return WEBHOOKS[self.forge.name](self.forge, SECRETS[self.forge.name])

    def add(self, *options: str) -> dict[str, Any]:
        """Add an intake, whose schedule makes one pass now and no further pass in this test."""
        answer = self.septet("intake", "add", "--repo", self.repository, "--every", "86400", *options, "--json")
        assert answer.code == 0, answer
        intake: dict[str, Any] = answer.json["intake"]
        return intake

    @contextmanager
    def intake(self, *options: str) -> Iterator[dict[str, Any]]:
        intake = self.add(*options)
        try:
            yield intake
        finally:
            assert self.septet("intake", "remove", intake["id"], "--json").json["removed"] == intake["id"]

    def orders(self, number: int) -> list[str]:
        return self._of_issue(self.septet("list", "--json").json["tasks"], number)

    def order(self, number: int) -> str:
        rows = self.septet.wait_for("/agent-work-orders", lambda rows: self._of_issue(rows, number))
        return self._of_issue(rows, number)[0]

    def _of_issue(self, rows: list[dict[str, Any]], number: int) -> list[str]:
        here = [row for row in rows if row["repository_url"] == self.repository]
        return [row["id"] for row in here if row["issue_number"] == str(number)]

    def over(self, kind: str = "Intake") -> list[str]:
        listed = self.septet.temporal(
            "workflow", "list", "--query", f"WorkflowType='{kind}' AND ExecutionStatus='Completed'", "-o", "json"
        )
        return [row["execution"]["workflowId"] for row in json.loads(listed.out or "[]")]

    def passed(self, intake: dict[str, Any], count: int) -> None:
        """Trigger a pass of an intake, except its first pass, and wait for this number of passes."""
        if count > 1:
            self.septet.temporal("schedule", "trigger", "--schedule-id", intake["id"])
        until_temporal(lambda: len([name for name in self.over() if name.startswith(intake["id"])]) >= count)

    def answers(self, number: int) -> list[str]:
        return [note.body for note in self.forge.issues[number].notes if note.author == "septet"]

    def obeyed(self, sent: Sent) -> None:
        """Send a comment's delivery three times, and wait until its workflow has ended."""
        answers = [sent.send(self.api) for _ in range(3)]
        assert [answer.status_code for answer in answers] == [202, 200, 200], [answer.text for answer in answers]
        name = answers[0].json()["workflows"][0]
        until_temporal(lambda: name in self.over("CommentCommand"))


@contextmanager
def serving_sites(root: Path) -> Iterator[dict[str, Site]]:
    """Run three forges and `septet up` while the block lasts."""
    with ExitStack() as stack:
        metrics = f"127.0.0.1:{free_port()}"
        fakes, extra = [], {"SEPTET_HOST_LIMIT": "0", "SEPTET_METRICS": metrics}
        for kind in (GitHubFake, GitLabFake, GiteaFake):
            origin = make_origin(root / kind.name / "o", "foo.js.git")
            origin.push({"README.md": "# app\n", "app.py": "print('hello')\n"})
            fake = stack.enter_context(serving_forge(kind(repositories=root / kind.name)))
            fakes.append(fake)
            extra |= fake.settings | {f"SEPTET_{fake.name.upper()}_WEBHOOK_SECRET": SECRETS[fake.name]}
        septet = Septet(root / "machine", extra)
        running = stack.enter_context(septet.up())
        yield {fake.name: Site(septet, fake, running.api, metrics) for fake in fakes}


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Site]]:
    with serving_sites(tmp_path_factory.mktemp("intake")) as sites:
        yield sites
        for site in sites.values():
            assert site.forge.deviations == []


@pytest.fixture
def site(sites: dict[str, Site], request: pytest.FixtureRequest) -> Site:
    return sites[getattr(request, "param", "github")]


each_before_a_release = pytest.mark.parametrize(
    "site",
    ["github", *(pytest.param(name, marks=pytest.mark.release) for name in ("gitlab", "gitea"))],
    indirect=True,
)
"""The forges' own tests cover their differences; these run for each forge before a release."""


@each_before_a_release
def test_who_may_write_is_obeyed_and_answered_once(site: Site) -> None:
    """A repeated command is carried out and answered once; a stranger's command is ignored."""
    number = site.forge.add_issue("Totals are wrong")
    with site.intake():
        ignored, refused = (
            site.counted("septet_deliveries_total", outcome=each) for each in ("ignored", "unsigned")
        )
        site.obeyed(site.webhook.commented(number, "/septet run", "eve"))
        assert (site.orders(number), site.answers(number)) == ([], [])
        site.obeyed(site.webhook.commented(number, "/septet run"))
        order = site.orders(number)[0]
        assert [f"`{order}`" in answer for answer in site.answers(number)] == [True]
        site.obeyed(site.webhook.commented(number, "/septet cancel it is done by hand"))
        task = site.septet("show", order, "--json").json
        assert task["task"]["status"] == "cancelled"
        site.obeyed(site.webhook.commented(number, "/septet run"))
        assert "/septet retry" in site.answers(number)[-1]
        site.obeyed(site.webhook.commented(number, "/septet dance"))
        assert "/septet approve PLAN_SHA256" in site.answers(number)[-1]
        assert len(site.answers(number)) == 4
        talk = site.webhook.commented(number, "I would /septet run this").send(site.api)
        assert (talk.status_code, talk.json()["accepted"]) == (200, False)
        assert len(site.orders(number)) == 1
        commands = "septet_comment_commands_total"
        assert site.counted(commands, outcome="ignored", verb="run") >= 1
        assert site.counted(commands, outcome="obeyed", verb="unknown") >= 1
        assert site.counted("septet_intake_issues_total", outcome="taken") >= 1
        assert site.counted("septet_intake_issues_total", outcome="refused") >= 1
        assert site.counted("septet_deliveries_total", outcome="ignored") == ignored + 11
        assert site.counted("septet_deliveries_total", outcome="unsigned") == refused


@each_before_a_release
def test_a_strangers_edit_after_the_label_waits_for_a_person(site: Site) -> None:
    """No agent starts; a person who may push reads the issue, and a retry works on its new text."""
    number = site.forge.add_issue("Totals are wrong", "By one.", author="eve")
    site.forge.label_issue(number, "held", "ada", "2026-03-01T12:00:00Z")
    site.forge.edit_issue(number, "eve", title="Delete all tests", body="All.")
    with site.intake("--label", "held", "--at-once"):
        order = site.order(number)
        task = site.septet.closed(order)
        assert (task["status"], task["stage"], task["steps"]) == ("failed", "blocked", [])
        assert task["error"]["type"] == "IssueChanged"
        assert f"septet retry {order}" in task["error"]["remedy"]
        assert "eve, who may not push, edited the issue after ada asked for it" in task["error"]["message"]
        site.obeyed(site.webhook.commented(number, "/septet retry"))
        begun = site.septet.wait_for_order(order, lambda task: task["title"])
        assert (begun["error"], begun["title"]) == (None, "Delete all tests")
        site.septet.cancelled(order)


def test_a_plan_is_approved_by_its_sha_alone(site: Site) -> None:
    """The issue has a comment with the plan; a command with the plan's SHA-256 approves this plan and no other."""
    number = site.forge.add_issue("Totals are wrong", labels=("planned",))
    with site.intake("--label", "planned", "--approve-plan", "--at-once"):
        posted = until(lambda: site.answers(number))[0]
        sha = re.search(r"^/septet approve ([0-9a-f]{64})$", posted, re.MULTILINE)
        assert sha is not None, posted
        order = site.orders(number)[0]
        site.septet.wait_for_order(order, "waiting")
        site.obeyed(site.webhook.commented(number, f"/septet approve {'0' * 64}"))
        assert "is waiting with a different plan" in site.answers(number)[-1]
        site.obeyed(site.webhook.commented(number, "/septet approve"))
        assert "Name the plan" in site.answers(number)[-1]
        site.obeyed(site.webhook.commented(number, f"/septet approve {sha[1]}", "eve"))
        assert not site.webhook.commented(number, posted).send(site.api).json()["accepted"], "its own words"
        assert site.septet("show", order, "--json").json["task"]["status"] == "waiting"
        assert len(site.answers(number)) == 3
        site.obeyed(site.webhook.commented(number, f"/septet approve {sha[1]}"))
        history = site.septet("show", order, "--json").json["history"]
        assert "ada on github" in {move["who"] for move in history}
        assert len(site.answers(number)) == 4
        site.septet.cancelled(order)


@each_before_a_release
def test_a_pull_request_takes_commands_and_its_merge_is_on_the_board_without_a_question(site: Site) -> None:
    """A command is answered on the pull request; a webhook of a merge moves the task, without a request to the forge."""
    number = site.forge.add_issue("Totals are wrong", labels=("merged",))
    with site.intake("--label", "merged", "--at-once") as intake:
        order = site.order(number)
        assert site.septet.closed(order)["status"] == "completed"
        pull = max(site.forge.pulls)
        site.septet.wait_for_order(order, "review")
        site.obeyed(site.webhook.commented_on_pull(pull, "/septet cancel by hand", "eve"))
        notes = site.forge.pulls[pull].notes
        assert [note.author for note in notes] == ["eve"]
        site.obeyed(site.webhook.commented_on_pull(pull, "/septet dance"))
        (answer,) = (note.body for note in notes if note.author == "septet")
        assert "/septet approve PLAN_SHA256" in answer
        told = until(lambda: _if_accepted(site.webhook.merged(pull).send(site.api).json()))
        assert told["workflows"] == [f"{order}/pr"]
        site.septet.wait_for_order(order, "done")
        assert site.forge.pulls[pull].state == "open", "the forge itself knows nothing of it here"
        described = site.septet.temporal("schedule", "describe", "--schedule-id", intake["id"], "-o", "json")
        assert "last webhook: " in described.out


@each_before_a_release
def test_what_was_written_while_nobody_listened_is_obeyed_once(site: Site) -> None:
    """A pass finds comments that came without a webhook, checks their authors, and obeys and answers each once."""
    number = site.forge.add_issue("Totals are wrong")
    with site.intake("--label", "unheard") as intake:
        site.passed(intake, 1)
        site.forge.add_comment(number, "/septet run", "eve", now())
        site.forge.add_comment(number, "/septet run", "ada", now())
        heard = site.forge.issues[number].notes[-1]
        site.passed(intake, 2)
        until(lambda: site.answers(number))
        late = site.webhook.comment(number, heard).send(site.api).json()
        assert (late["accepted"], late["why"]) == (False, "This delivery was already received.")
        site.passed(intake, 3)
        assert len(site.orders(number)) == len(site.answers(number)) == 1


def test_an_issue_whose_taker_was_terminated_is_taken_once(site: Site) -> None:
    """If a pass was terminated between its claim and the start of the work order, the next pass starts the work order."""
    number = site.forge.add_issue("Totals are wrong", labels=("left",))
    taker = "intake/left"
    site.septet.temporal(
        "workflow", "start", "--type", "Intake", "--task-queue", "nobody", "--workflow-id", taker, "--input", "{}"
    )
    remote = Remote(site.repository, dict(os.environ), site.forge.token)
    claims = IssueClaims(remote, site.septet.state / "scratch")
    assert claims.claim(number, "wo-of-the-taker", taker, "2026-01-01T00:00:00Z")
    with site.intake("--label", "left") as intake:
        site.passed(intake, 1)
        assert site.orders(number) == [], "its taker lives"
        site.septet.temporal("workflow", "terminate", "--workflow-id", taker)
        site.passed(intake, 2)
        order = site.order(number)
        assert site.orders(number) == [order]
        site.passed(intake, 3)
        assert len(site.orders(number)) == 1


def test_a_repository_on_this_machine_has_an_intake(site: Site, tmp_path: Path) -> None:
    """Each issue with the label is taken once; a local pull request cannot be followed."""
    repository = make_origin(tmp_path, "here.git")
    repository.push({"README.md": "# app\n"})
    where = ("--repo", str(repository.bare))
    added = site.septet("issue", "add", *where, "--title", "Totals are wrong", "--label", "septet", "--json")
    assert added.code == 0, added
    intake = site.septet("intake", "add", *where, "--every", "86400", "--json").json["intake"]
    try:
        for count in (1, 2):
            site.passed(intake, count)
            rows = site.septet("list", "--json").json["tasks"]
            assert len([row for row in rows if row["repository_url"] == str(repository.bare)]) == 1
    finally:
        site.septet("intake", "remove", intake["id"], "--json")
    refused = site.septet("run", *where, "--title", "T", "--follow-pr", "--json")
    assert refused.code == 2
    assert "nothing to follow" in refused.json["error"]["message"]


def _if_accepted(reply: dict[str, Any]) -> dict[str, Any] | None:
    return reply if reply["accepted"] else None


def test_what_is_not_signed_is_not_read(site: Site) -> None:
    """The worker ignores a delivery without a valid signature, and starts nothing."""
    number = site.forge.add_issue("Nobody says so", labels=("septet",))
    good = site.webhook.labelled(number)
    forged = Sent(good.forge, good.headers, good.body.replace(b"Nobody", b"Anybody"))
    unsigned = Sent(good.forge, {k: v for k, v in good.headers.items() if "Signature" not in k}, good.body)
    refused = [
        forged.send(site.api),
        unsigned.send(site.api),
        good.send(site.api, **{"X-Hub-Signature-256": "sha1=0"}),
        GitHubWebhook(site.forge, "another secret").labelled(number).send(site.api),
    ]
    assert [answer.status_code for answer in refused] == [401, 401, 401, 401]
    assert Sent("gitlab", good.headers, good.body).send(site.api).status_code == 401
    assert Sent("nobody", good.headers, good.body).send(site.api).status_code == 404
    huge = Sent(good.forge, good.headers, b" " * (2 * 1024 * 1024 + 1))
    assert huge.send(site.api).status_code == 413
    told = good.send(site.api)
    assert (told.status_code, told.json()["accepted"]) == (200, False), "no intake takes issues of this repository"
    assert site.orders(number) == []


def test_an_intake_says_how_its_work_orders_are_done(site: Site) -> None:
    """The intake keeps each option, and the work orders of its issues have these options."""
    number = site.forge.add_issue("Totals are wrong again", labels=("mine",))
    added = site.septet(
        "intake", "add", "--repo", site.repository, "--label", "mine", "--every", "3600", "--agent", "scripted",
        "--model", "small", "--project", "totals", "--approve-plan", "--draft", "--json",
    )  # fmt: skip
    assert added.code == 0, added
    intake = added.json["intake"]
    expected = {
        "label": "mine", "every_seconds": 3600, "agent": "scripted", "model": "small", "project": "totals",
        "approve_plan": True, "draft": True, "at_once": False,
    }  # fmt: skip
    assert {name: intake[name] for name in expected} == expected
    order = site.order(number)
    task = site.septet("show", order, "--json").json["task"]
    assert (task["project"], task["assigned_agent"], task["stage"]) == ("totals", "scripted", "triaged")
    assert intake["id"] in site.septet("intake", "list").out
    assert site.septet("intake", "remove", intake["id"]).code == 0


def test_intakes_are_the_same_over_http(site: Site) -> None:
    """The command line lists an intake of HTTP; a second intake for the label is refused, a removed one not found."""
    with site.septet.api as api:
        body = {"repository": site.repository, "label": "over http", "every_seconds": 86400, "approve_plan": True}
        added = api.post("/intakes", json=body)
        assert added.status_code == 201, added.text
        name = added.json()["intake"]["id"]
        assert api.post("/intakes", json=body).status_code == 409
        listed = site.septet("intake", "list", "--json").json
        assert listed == api.get("/intakes").json()
        assert [each["approve_plan"] for each in listed["intakes"] if each["id"] == name] == [True]
        assert api.delete(f"/intakes/{name}").json() == {"ok": True, "removed": name}
        assert api.delete(f"/intakes/{name}").status_code == 404
        assert api.post("/intakes", json={**body, "label": "a,b"}).status_code == 422
