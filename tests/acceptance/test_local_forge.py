"""Issues and pull requests of a repository on this machine, from inside its checkout."""

import pytest
from fakes.repositories import Origin, git
from fakes.septet_command import Septet
from fakes.shared_server import Host

pytestmark = pytest.mark.faces


def test_issues_are_listed_shown_and_closed(served: Septet, origin: Origin) -> None:
    """Closed issues are listed only with `--all`; a folder of a checkout names the repository."""
    for title in ("First", "Second"):
        assert served("issue", "add", "--title", title, "--body", "Why.", cwd=origin.bare).code == 0
    repo = str(origin.bare)
    assert served("issue", "close", "1", "--repo", repo, "--json").json["issue"]["state"] == "closed"
    listed = served("issue", "list", "--repo", repo, "--json").json["issues"]
    assert [(issue["number"], issue["title"]) for issue in listed] == [(2, "Second")]
    assert served("issue", "list", "--all", cwd=origin.bare).out.splitlines() == [
        "#1  closed  First", "#2  open    Second",
    ]  # fmt: skip
    shown = served("issue", "show", "2", "--repo", repo).out
    assert served("issue", "show", "2", "--repo", repo, "--json").json["issue"]["body"] == "Why."
    assert shown.startswith("#2 Second  (open)\n")
    assert shown.rstrip().endswith("Why.")
    assert served("issue", "close", "9", "--repo", repo, "--json").code == 3


def test_pull_requests_are_listed_shown_and_merged_in_a_checkout(host: Host, origin: Origin) -> None:
    """A merge updates a clean checkout of the base; a checkout with changes is refused with the command to type.

    The merge is on the board at once, however long the pause between two looks at a pull request is.
    """
    with host.worker(SEPTET_LOOK_SECONDS="3600", SEPTET_LONGEST_LOOK_SECONDS="3600"):
        _merge_in_a_checkout(host.septet, origin)


def _merge_in_a_checkout(served: Septet, origin: Origin) -> None:
    checkout = origin.checkout
    ended = served("run", "--title", "Say goodbye", "--id", "wo-in-checkout", "--wait", "--json", cwd=checkout)
    assert ended.code == 0, ended
    number = ended.json["task"]["pr_url"].rpartition("/")[2]
    repo = str(checkout)
    (listed,) = served("pr", "list", "--repo", repo, "--json").json["pull_requests"]
    assert (str(listed["number"]), listed["state"]) == (number, "open")
    assert listed["title"] in served("pr", "show", number, "--repo", repo).out
    assert served("pr", "show", number, "--repo", repo, "--json").json["pull_request"]["head"] == listed["head"]
    patch = served("pr", "diff", number, "--repo", repo).out
    assert patch.startswith("diff --git ")
    assert served("pr", "diff", number, "--repo", repo, "--json").json["patch"] == patch
    app = checkout / "app.py"
    app.write_text("print('mine')\n", encoding="utf-8")
    refused = served("pr", "merge", number, "--repo", repo, "--json").error
    assert "uncommitted changes (app.py)" in refused["message"]
    assert f"git -C {checkout} stash" in refused["remedy"]
    git(checkout, "stash")
    merged = served("pr", "merge", number, "999", "1000", cwd=checkout)
    assert (merged.code, merged.out.startswith(f"Merged #{number} ")) == (3, True), merged
    assert "Pull request 999: " in merged.err
    assert "No longer tried: 1000." in merged.err
    assert git(checkout, "rev-parse", "HEAD^2") == listed["head_sha"]
    assert git(checkout, "status", "--porcelain") == ""
    assert served("pr", "diff", number, "--repo", repo).out == patch
    served.wait_for_order("wo-in-checkout", "done")
    again = served("pr", "merge", number, "1000", cwd=checkout)
    assert again.code == 5
    assert again.err.count(f"Pull request {number}") == 1
    assert served("pr", "list", cwd=checkout).out == "There are no open pull requests.\n"
    assert "merged" in served("pr", "list", "--all", cwd=checkout).out


def test_one_that_comes_after_another_begins_when_that_is_merged(host: Host, origin: Origin) -> None:
    """The second work order names the work order that it waits for, and begins when the first is merged.

    A closed pull request of a local forge is never reopened: the remedy ends the work order.
    """
    with host.worker(SEPTET_LOOK_SECONDS="0.5", SEPTET_LONGEST_LOOK_SECONDS="1"):
        here = ("--repo", origin.bare, "--project", "boarded", "--json")
        first = host.septet("run", *here, "--title", "Say more", "--id", "wo-before", "--wait")
        assert first.json["task"]["stage"] == "review"
        made = host.septet("create", *here, "--title", "Say it again", "--id", "wo-after", "--after", "wo-before")
        assert made.code == 0, made
        if made.json["task"]["stage"] == "collected":
            assert host.septet("move", "wo-after", "triaged", "--json").code == 0
        host.septet.wait_for_detail(
            "wo-after", lambda detail: "wo-before is in review" in (detail["waiting_for"] or "")
        )
        merged = host.septet("pr", "merge", "--repo", origin.bare, "1", "--json").json["pull_request"]
        assert merged["state"] == "merged"
        host.septet.wait_for_order("wo-before", "done")
        assert host.septet.closed("wo-after")["stage"] == "review"
        history = [move["to"] for move in host.septet("show", "wo-before", "--json").json["history"]]
        assert history == ["executing", "review", "done"]
        rows = host.septet("board", "--project", "boarded", "--json").json
        assert {stage: len(tasks) for stage, tasks in rows["stages"].items() if tasks} == {"review": 1, "done": 1}
        closed = host.septet("pr", "close", "--repo", origin.bare, "2", "--json")
        assert closed.json["pull_request"]["state"] == "closed"
        remedy = host.septet.wait_for_order("wo-after", "blocked")["error"]["remedy"]
        for again in (("retry",), ("retry", "--from", "implement_plan"), ("move", "executing")):
            verb, *rest = again
            refused = host.septet(verb, "wo-after", *rest, "--json")
            assert (refused.code, refused.error["remedy"]) == (5, remedy)
        assert remedy.startswith("`septet move wo-after done` ends it.")
        assert host.septet("move", "wo-after", "done", "--json").code == 0
