"""Plan, changes, lists and the page of a work order, over commands and HTTP."""

import shlex
from pathlib import Path
from typing import Any

import pytest
from fakes.repositories import Origin
from fakes.septet_command import Ended, Septet
from fakes.shell_programs import write_program
from fakes.terminal import terminal
from playwright.sync_api import Browser

pytestmark = pytest.mark.faces

Task = dict[str, Any]


def test_a_plan_is_shown_whole(served: Septet, done: Task) -> None:
    """`septet plan` prints the plan's file with its path; HTTP answers the same object."""
    answer = served("plan", done["id"], "--json").json
    assert answer["plan"]["path"] == done["plan_path"]
    assert answer["plan"]["whole"]
    assert answer["plan"]["text"].splitlines()[0] in served("plan", done["id"]).out
    with served.api as api:
        assert api.get(f"/agent-work-orders/{done['id']}/plan").json() == answer


def test_changes_are_shown_as_a_patch(served: Septet, done: Task) -> None:
    """In a pipe `septet diff` prints a patch that git takes; HTTP answers the same object."""
    printed = served("diff", done["id"]).out
    assert printed.startswith("diff --git ")
    answer = served("diff", done["id"], "--json").json
    assert answer["diff"]["patch"] == printed
    with served.api as api:
        assert api.get(f"/agent-work-orders/{done['id']}/diff").json() == answer


def test_changes_are_paged_on_a_terminal(served: Septet, done: Task, tmp_path: Path) -> None:
    """On a terminal the changes go through `$PAGER`, in colours."""
    pager = write_program(tmp_path / "pager", f'#!/bin/sh\ncat > "{tmp_path}/paged"\n')
    with terminal(served, "diff", done["id"], PAGER=str(pager)) as person:
        assert person.end()[0] == 0
    paged = (tmp_path / "paged").read_text()
    assert done["plan_path"] in paged
    assert "\x1b[32m+" in paged


def test_what_is_not_there_yet_is_said(served: Septet, origin: Origin) -> None:
    """A work order that has not begun has no plan and no changes; the remedy can be typed as it is."""
    assert served("create", origin.bare, "--title", "Wait", "--id", "wo-no-plan", "--json").code == 0
    error = served("plan", "wo-no-plan", "--json").error
    assert (error["type"], "septet watch wo-no-plan" in error["remedy"]) == ("NotFound", True)
    error = served("diff", "wo-no-plan", "--json").error
    assert (error["type"], error["message"].partition(":")[0]) == ("NotFound", "wo-no-plan has no changes")
    served("move", "wo-no-plan", "cancelled", "--json")


def test_a_list_has_what_was_asked_for(served: Septet, done: Task, origin: Origin) -> None:
    """The list filters by state, agent, repository and age; in a pipe each work order is a line with tabs."""

    def ids(answer: Ended) -> list[str]:
        return [task["id"] for task in answer.json["tasks"]]

    repository = done["repository_url"]
    served.wait_for(
        "/agent-work-orders",
        lambda rows: done["id"] in [row["id"] for row in rows],
        status="completed",
        limit="500",
    )
    assert done["id"] in ids(served("list", "--state", "completed", "--limit", "500", "--json"))
    assert done["id"] not in ids(served("list", "--state", "open", "--limit", "500", "--json"))
    assert done["id"] in ids(served("list", "--agent", "scripted", "--limit", "500", "--json"))
    assert ids(served("list", "--agent", "codex", "--json")) == []
    assert ids(served("list", "--repo", repository, "--json")) == [done["id"]]
    assert ids(served("list", "--repo", repository, "--since", "1h", "--json")) == [done["id"]]
    page = served("list", "--limit", "1", "--json").json
    assert ids(served("list", "--limit", "500", "--after", page["next"], "--json")) != [page["tasks"][0]["id"]]
    assert served("list", "--since", "soon", "--json").code == 2
    lines = served("list", "--repo", done["repository_url"]).out.splitlines()
    assert [line.split("\t")[:2] for line in lines] == [[done["id"], "completed"]]
    with served.api as api:
        answer = api.get("/agent-work-orders", params={"repository": done["repository_url"], "within_hours": 1})
        assert [each["id"] for each in answer.json()] == [done["id"]]
        assert api.get("/agent-work-orders", params={"agent": "codex"}).json() == []


def test_a_work_order_is_opened_in_the_browser(served: Septet, done: Task, tmp_path: Path) -> None:
    """`septet open` gives the page to the browser that `BROWSER` names; a pull request without an address is refused."""
    browser = write_program(tmp_path / "browser", f'#!/bin/sh\necho "$1" >> "{tmp_path}/opened"\n')
    person = Septet(served.root, {**served.extra, "BROWSER": str(browser)})
    assert person("open", done["id"], "--json").code == 0
    refused = person("open", done["id"], "--pr", "--json")
    see = refused.error["remedy"].partition("See it: ")[2].partition(", or")[0]
    assert (refused.code, person(*shlex.split(see)[1:]).code) == (2, 0)
    assert (tmp_path / "opened").read_text().splitlines() == [(served.state / "open.html").as_uri()]
    assert (served.state / "open.html").stat().st_mode & 0o077 == 0


def test_the_page_that_is_opened_lets_in(served: Septet, done: Task, browser: Browser) -> None:
    """The opened file has no key in its name, and leads to the board or the work order, signed in."""
    page = browser.new_page()
    person = Septet(served.root, {**served.extra, "BROWSER": "true"})
    for arguments, heading in (((), "Board"), ((done["id"],), done["title"])):
        opened = person("open", *arguments, "--json").json["opened"]
        page.goto((served.state / "open.html").as_uri())
        page.wait_for_url(f"{opened}*")
        page.get_by_role("heading", level=1, name=heading).wait_for()
    page.close()


def test_a_refresh_answers_with_the_work_order(served: Septet, done: Task) -> None:
    """`septet refresh` looks at the pull request now, and refuses an unknown work order."""
    assert served("refresh", done["id"], "--json").json["task"]["id"] == done["id"]
    assert served("refresh", "wo-nobody", "--json").code == 3
