import pytest
from fakes.repositories import Origin
from fakes.septet_command import Septet

pytestmark = pytest.mark.faces


def test_one_that_comes_after_another_begins_when_that_is_merged(served: Septet, origin: Origin) -> None:
    """The second work order names the work order that it waits for, and begins when the first is merged.

    `septet pr` causes a look at the pull request at once. A closed pull request of a local forge is never reopened: the
    remedy ends the work order.
    """
    here = ("--repo", origin.bare, "--project", "boarded", "--json")
    first = served("run", *here, "--title", "Say more", "--id", "wo-before", "--wait")
    assert first.json["task"]["stage"] == "review"
    made = served("create", *here, "--title", "Say it again", "--id", "wo-after", "--after", "wo-before")
    assert made.code == 0, made
    if made.json["task"]["stage"] == "collected":
        assert served("move", "wo-after", "triaged", "--json").code == 0
    served.wait_for_detail("wo-after", lambda detail: "wo-before is in review" in (detail["waiting_for"] or ""))
    merged = served("pr", "merge", "--repo", origin.bare, "1", "--json").json["pull_request"]
    assert merged["state"] == "merged"
    served.wait_for_order("wo-before", "done")
    assert served.closed("wo-after")["stage"] == "review"
    history = [move["to"] for move in served("show", "wo-before", "--json").json["history"]]
    assert history == ["executing", "review", "done"]
    rows = served("board", "--project", "boarded", "--json").json
    assert {stage: len(tasks) for stage, tasks in rows["stages"].items() if tasks} == {"review": 1, "done": 1}
    closed = served("pr", "close", "--repo", origin.bare, "2", "--json")
    assert closed.json["pull_request"]["state"] == "closed"
    remedy = served.wait_for_order("wo-after", "blocked")["error"]["remedy"]
    for again in (("retry",), ("retry", "--from", "implement_plan"), ("move", "executing")):
        verb, *rest = again
        refused = served(verb, "wo-after", *rest, "--json")
        assert (refused.code, refused.error["remedy"]) == (5, remedy)
    assert remedy.startswith("`septet move wo-after done` ends it.")
    assert served("move", "wo-after", "done", "--json").code == 0
