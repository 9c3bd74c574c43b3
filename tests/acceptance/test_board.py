import json

import pytest
from fakes.repositories import Origin, git
from fakes.septet_command import Septet

pytestmark = pytest.mark.faces


def test_one_that_comes_after_another_begins_when_that_is_merged(septet: Septet, origin: Origin) -> None:
    """The second work order names the work order that it waits for, and begins when the first is merged.

    A closed pull request of a local forge is never reopened: the remedy ends the work order.
    """
    with septet.up(SEPTET_LOOK_SECONDS="0.5", SEPTET_LONGEST_LOOK_SECONDS="1"):
        first = septet("run", "--repo", origin.bare, "--title", "Say more", "--id", "wo-1", "--wait", "--json")
        assert first.json["task"]["stage"] == "review"
        made = septet("create", "--repo", origin.bare, "--title", "Say it again", "--id", "wo-2", "--after", "wo-1", "--json")  # fmt: skip
        assert made.code == 0, made
        if made.json["task"]["stage"] == "collected":
            assert septet("move", "wo-2", "triaged", "--json").code == 0
        septet.wait_for_detail("wo-2", lambda detail: "wo-1 is in review" in (detail["waiting_for"] or ""))
        merged = septet("pr", "merge", "--repo", origin.bare, "1", "--json").json["pull_request"]
        assert merged["state"] == "merged"
        septet.wait_for_order("wo-1", "done")
        assert septet.closed("wo-2")["stage"] == "review"
        history = [move["to"] for move in septet("show", "wo-1", "--json").json["history"]]
        assert history == ["executing", "review", "done"]
        git(origin.checkout, "pull", "-q", "origin", "main")
        rows = json.loads(septet("board", "--json").out)
        assert {stage: len(tasks) for stage, tasks in rows["stages"].items() if tasks} == {"review": 1, "done": 1}
        closed = septet("pr", "close", "--repo", origin.bare, "2", "--json")
        assert closed.json["pull_request"]["state"] == "closed"
        remedy = septet.wait_for_order("wo-2", "blocked")["error"]["remedy"]
        for again in (("retry",), ("retry", "--from", "implement_plan"), ("move", "executing")):
            verb, *rest = again
            refused = septet(verb, "wo-2", *rest, "--json")
            assert (refused.code, refused.error["remedy"]) == (5, remedy)
        assert remedy.startswith("`septet move wo-2 done` ends it.")
        assert septet("move", "wo-2", "done", "--json").code == 0


def test_a_merge_is_on_the_board_at_once(septet: Septet, origin: Origin) -> None:
    """`septet pr merge` causes a look at the pull request, however long the pause between two looks is."""
    with septet.up(SEPTET_LOOK_SECONDS="3600", SEPTET_LONGEST_LOOK_SECONDS="3600"):
        done = septet("run", "--repo", origin.bare, "--title", "Say more", "--id", "wo-1", "--wait", "--json")
        assert done.json["task"]["stage"] == "review"
        assert septet("pr", "merge", "--repo", origin.bare, "1", "--json").code == 0
        septet.wait_for_order("wo-1", "done")
