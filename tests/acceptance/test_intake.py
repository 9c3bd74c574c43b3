"""Issues become work orders by themselves: by a schedule, and by what forges tell; each once."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fakes.forges.github import GitHubFake
from fakes.forges.serving import serving_forge
from fakes.forges.state import ForgeFake
from fakes.repositories import make_origin
from fakes.septet_command import Septet
from fakes.waiting import until
from fakes.webhooks import SECRET, GitHubWebhook, Sent

pytestmark = pytest.mark.faces


@dataclass
class Site:
    """A machine with `septet up`, and a forge that sends it webhooks."""

    septet: Septet
    forge: ForgeFake
    api: str

    @property
    def repository(self) -> str:
        """The repository's address."""
        return f"{self.forge.url}/{self.forge.project}.git"

    @property
    def webhook(self) -> GitHubWebhook:
        """What the forge sends."""
        return GitHubWebhook(self.forge)

    def add(self, *options: str) -> dict[str, Any]:
        """Add an intake, whose schedule looks once now and then no more in this test."""
        answer = self.septet("intake", "add", "--repo", self.repository, "--every", "86400", *options, "--json")
        assert answer.code == 0, answer
        intake: dict[str, Any] = answer.json["intake"]
        return intake

    def orders(self, number: int) -> list[str]:
        """Return the work orders of an issue."""
        rows = self.septet("list", "--json").json["tasks"]
        return [row["id"] for row in rows if row["issue_number"] == str(number)]

    def passes(self) -> list[str]:
        """Return the passes of intakes that are over."""
        listed = self.septet.temporal(
            "workflow", "list", "--query", "WorkflowType='Intake' AND ExecutionStatus='Completed'", "-o", "json"
        )
        return [row["execution"]["workflowId"] for row in json.loads(listed.out or "[]")]


@contextmanager
def serving_site(root: Path) -> Iterator[Site]:
    """Run a forge, and `septet up` beside it, for as long as the block lasts."""
    origin = make_origin(root / "forge" / "o", "foo.js.git")
    origin.push({"README.md": "# app\n", "app.py": "print('hello')\n"})
    with serving_forge(GitHubFake(repositories=root / "forge")) as fake:
        extra = {
            "SEPTET_GITHUB_HOSTS": fake.url.removeprefix("http://"),
            "SEPTET_GITHUB_API_URL": fake.url + fake.api_path,
            "SEPTET_GITHUB_TOKEN": fake.token,
            "SEPTET_GITHUB_WEBHOOK_SECRET": SECRET,
            "SEPTET_HOST_LIMIT": "0",
        }
        septet = Septet(root / "machine", extra)
        with septet.up() as running:
            yield Site(septet, fake, running.api)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with serving_site(tmp_path_factory.mktemp("intake")) as site:
        yield site


def test_an_issue_is_taken_once_by_schedules_and_by_webhooks(site: Site) -> None:
    """Two schedules, a webhook that comes three times and one of a later label start one work order of an issue."""
    number = site.forge.add_issue("Totals are wrong", labels=("septet", "also"))
    first = site.add()
    second = site.add("--label", "also")
    until(lambda: len([name for name in site.passes() if name.startswith((first["id"], second["id"]))]) == 2)

    delivery = site.webhook.labelled(number)
    answers = [delivery.send(site.api) for _ in range(3)]
    later = site.webhook.labelled(number, "also").send(site.api)

    assert [answer.status_code for answer in answers] == [202, 200, 200]
    assert answers[1].json()["why"] == "It came before."
    until(lambda: {answers[0].json()["workflows"][0], later.json()["workflows"][0]} <= set(site.passes()))
    assert len(site.orders(number)) == 1
    task = site.septet("show", site.orders(number)[0], "--json").json["task"]
    assert (task["stage"], task["issue_number"]) == ("triaged", str(number))
    for intake in (first, second):
        assert site.septet("intake", "remove", intake["id"], "--json").json["removed"] == intake["id"]


def test_what_is_not_signed_is_not_read(site: Site) -> None:
    """A delivery with a wrong signature, none, or another body than was signed is refused; nothing is started."""
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
    assert Sent("gitlab", good.headers, good.body).send(site.api).status_code == 404
    assert Sent("nobody", good.headers, good.body).send(site.api).status_code == 404
    huge = Sent(good.forge, good.headers, b" " * (2 * 1024 * 1024 + 1))
    assert huge.send(site.api).status_code == 413
    told = good.send(site.api)
    assert (told.status_code, told.json()["accepted"]) == (200, False), "no intake takes issues of this repository"
    assert site.orders(number) == []


def test_an_intake_says_how_its_work_orders_are_done(site: Site) -> None:
    """Each option is in the intake, and the work order of an issue that it takes is done so."""
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
    order = until(lambda: site.orders(number))[0]
    task = site.septet("show", order, "--json").json["task"]
    assert (task["project"], task["assigned_agent"], task["stage"]) == ("totals", "scripted", "triaged")
    assert intake["id"] in site.septet("intake", "list").out
    assert site.septet("intake", "remove", intake["id"]).code == 0
    hasty = site.forge.add_issue("Now", labels=("hasty",))
    at_once = site.septet(
        "intake", "add", "--repo", site.repository, "--label", "hasty", "--at-once", "--json"
    ).json["intake"]
    begun = until(lambda: site.orders(hasty))[0]
    assert site.septet.closed(begun)["status"] == "completed"
    assert [pull.title for pull in site.forge.pulls.values()] != []
    assert site.septet("intake", "remove", at_once["id"], "--json").code == 0


def test_intakes_are_the_same_over_http(site: Site) -> None:
    """What HTTP adds, the command line lists; a second one for the label is refused, and one that is gone not found."""
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
    refused = site.septet("intake", "add", "--repo", site.repository, "--every", "1", "--json")
    assert refused.code == 2
    assert refused.error["message"].startswith("--every: ")
