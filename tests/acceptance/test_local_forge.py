"""Issues and pull requests of a repository on this machine, from inside its checkout."""

import pytest
from fakes.repositories import Origin, git
from fakes.septet_command import Septet

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


def test_pull_requests_are_listed_shown_and_merged_in_a_checkout(served: Septet, origin: Origin) -> None:
    """A merge updates a clean checkout of the base; a checkout with changes is refused with the command to type."""
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
