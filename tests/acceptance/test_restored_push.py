"""Host and server are restored to before the work: a later push is taken over, and no step is paid twice."""

import shutil
from pathlib import Path

import pytest
from fakes.forges.github import GitHubFake
from fakes.forges.serving import serving_forge
from fakes.repositories import Origin, git, make_origin
from fakes.septet_command import FIRST_RUNS, ONCE, Septet
from fakes.shared_server import Host
from fakes.waiting import until

from septet.contracts.names import Step
from septet.forges.values import marker_of

pytestmark = [pytest.mark.recovery, pytest.mark.timeout(300), pytest.mark.law]

UPSTREAM = "o/foo.js"
TAKEN_OVER = [Step.IMPLEMENT_PLAN, Step.CREATE_COMMIT, Step.CREATE_PULL_REQUEST]


def start(septet: Septet, origin: Origin, repository: str, order: str, held_at: Step) -> str:
    """Start a work order whose agent waits in one step for the gate; return its id."""
    septet.scenario(order, {"steps": {held_at.value: {"wait_for": str(gate(septet))}}})
    given = {"repository": repository, "title": f"Work of {order}", "timeouts": {"heartbeat_seconds": 5}}
    return Host(septet, septet.address, "septet").start(origin, order, **given)


def gate(septet: Septet) -> Path:
    return septet.root / "go-on"


def back_up_and_lose(septet: Septet, orders: list[str]) -> list[dict[str, object]]:
    """Make a backup, complete the work orders, lose the machine, and put the backup back."""
    backup = septet.root / "backup"
    assert septet("backup", backup, "--json").code == 0
    gate(septet).touch()
    tasks = [septet.closed(order) for order in orders]
    assert [(task["status"], task["error"]) for task in tasks] == [("completed", None)] * len(orders)
    septet.end_all()
    shutil.rmtree(septet.state)
    shutil.copytree(backup, septet.state, symlinks=True)
    return tasks


@pytest.mark.parametrize("held_at", [Step.IMPLEMENT_PLAN, Step.CREATE_PULL_REQUEST])
def test_a_work_order_goes_on_from_what_it_pushed_after_the_backup(
    septet: Septet, origin: Origin, held_at: Step
) -> None:
    """No agent starts again without a person's retry; branch, commit and pull request stay."""
    with septet.up():
        order = start(septet, origin, str(origin.bare), "wo-1", held_at)
        septet.until_works(order, FIRST_RUNS[held_at])
        (before,) = back_up_and_lose(septet, [order])
    asked_for = 2 if held_at is Step.CREATE_PULL_REQUEST else 1
    with septet.up():
        after, runs = septet.closed(order), septet.runs(order)
        tip = git(origin.bare, "rev-parse", str(before["branch_name"]))
        assert septet("retry", order, "--from", "create_commit", "--json").code == 0
        last_run = f"{Step.CREATE_PULL_REQUEST.number}-{Step.CREATE_PULL_REQUEST.value}-{asked_for}"
        until(lambda: last_run in septet.runs(order))
        last = septet.closed(order)
    assert runs == ONCE[: held_at.number]
    same = ("status", "error", "branch_name", "commit_sha", "pr_url")
    assert {name: after[name] for name in same} == {name: before[name] for name in same}
    assert tip == before["commit_sha"]
    assert git(origin.bare, "ls-tree", "--name-only", "refs/septet/forge").count("pull") == 1
    rows = {row["step"]: row for row in after["steps"] if row["recovered_by"] == "pushed"}
    assert list(rows) == [step.value for step in TAKEN_OVER if step.number >= held_at.number]
    assert all("no agent was started" in row["warnings"][0] for row in rows.values())
    assert (last["status"], last["pr_url"]) == ("completed", before["pr_url"])


def test_on_a_forge_the_account_of_the_pull_request_tells_an_own_push_from_a_forged_one(
    septet: Septet, tmp_path: Path
) -> None:
    """A push that another person has copied or continued is not taken over: the work is done, and not pushed."""
    upstream = make_origin(tmp_path / "o", "foo.js.git")
    upstream.push({"README.md": "# foo\n"})
    with serving_forge(GitHubFake(repositories=tmp_path)) as fake:
        with septet.up(**fake.settings):
            address = f"{fake.url}/{UPSTREAM}.git"
            orders = [
                start(septet, upstream, address, order, Step.IMPLEMENT_PLAN)
                for order in ("wo-own", "wo-forged", "wo-shared")
            ]
            for order in orders:
                septet.until_works(order, FIRST_RUNS[Step.IMPLEMENT_PLAN])
            own, forged, shared = back_up_and_lose(septet, orders)
        (pull,) = [each for each in fake.pulls.values() if marker_of("wo-forged") in each.body]
        pull.author = "mallory"
        branch = str(shared["branch_name"])
        by_person = git(upstream.bare, "commit-tree", f"{branch}^{{tree}}", "-p", branch, "-m", "Go on by hand")
        git(upstream.bare, "update-ref", f"refs/heads/{branch}", by_person)
        with septet.up(**fake.settings):
            own_after, forged_after, shared_after = (septet.closed(order) for order in orders)
        assert len(fake.pulls) == len(orders)
    assert (own_after["status"], own_after["pr_url"]) == ("completed", own["pr_url"])
    assert own_after["commit_sha"] == own["commit_sha"]
    assert septet.runs("wo-own") == sorted(
        FIRST_RUNS[step] for step in Step if step.number <= Step.IMPLEMENT_PLAN.number
    )
    assert (forged_after["status"], shared_after["status"]) == ("failed", "failed")
    assert "Someone else has pushed to the branch" in forged_after["error"]["remedy"]
    assert git(upstream.bare, "rev-parse", branch) == by_person
    assert git(upstream.bare, "rev-parse", str(forged["branch_name"])) == forged["commit_sha"]
