"""The names of work orders' branches."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from septet.contracts.names import IssueClass
from septet.contracts.repository import BranchPrefix, FirstPart, name_refusal

FIRST = FirstPart("septet/", IssueClass.FEATURE, "7", "wo-1")
OF_TEXT = FirstPart("septet/", IssueClass.BUG, "", "wo-1")
OUT_OF_HAND = (
    "HEAD",
    "head",
    "FETCH_HEAD",
    "AUTO_MERGE",
    "stash",
    "@",
    "a" * 40,
    "0123456789abcdef" * 4,
    "heads/main",
    "tags/v1",
    "Tags/v1",
    "remotes/origin/main",
    "origin/main",
    "refs/heads/x",
    "notes/commits",
    "-x",
    "septet/forge",
    "septet/issues/7",
    "Septet/Checkpoints/wo-1/abc",
    "feat/größe",
    "a$(id)",
    "x" * 201,
)


@pytest.mark.parametrize("name", OUT_OF_HAND)
def test_what_git_reads_as_something_else_is_refused(name: str) -> None:
    """A name that git, a forge, a shell or Septet reads as something else, and a very long name, are refused."""
    assert name_refusal(name)


@pytest.mark.parametrize(
    "name", ["feat-issue-7-wo-1-x", "release/9.9", "ahead-of-time", "origins/x", "septet/bug-7-x"]
)
def test_other_names_are_a_repositorys_own_matter(name: str) -> None:
    """Other names are accepted, since a repository without a prefix may have its own style."""
    assert name_refusal(name) is None


@pytest.mark.parametrize(
    ("first", "given", "name"),
    [
        (FIRST, "feat-issue-7-wo-1-add-greeting", "septet/feat-7-add-greeting"),
        (FIRST, "septet/feat-7-add-greeting", "septet/feat-7-add-greeting"),
        (FIRST, "feature/Add_Greeting", "septet/feat-7-add-greeting"),
        (FIRST, "feat-issue-7-wo-1-7-days", "septet/feat-7-7-days"),
        (FIRST, "feat-issue-7-wo-1", "septet/feat-7"),
        (FIRST, "x" * 90, f"septet/feat-7-{'x' * 50}"),
        (FIRST, "-".join(["word"] * 20), f"septet/feat-7-{'-'.join(['word'] * 10)}"),
        (OF_TEXT, "bug-wo-1-totals", "septet/bug-wo-1-totals"),
        (FirstPart("bots-", None, "7", "wo-1"), "x-y", "bots-work-7-x-y"),
    ],
)
def test_the_slug_is_what_is_the_agents_own(first: FirstPart, given: str, name: str) -> None:
    """A name omits words that its first part already has, and its slug has at most 50 characters."""
    assert first.names_for(given)[0] == name


def test_other_names_are_ready_where_the_first_is_taken() -> None:
    """The further names add the work order's id, and replace the folder by a dash."""
    with_number = ("septet/feat-7-x-y", "septet/feat-7-x-y-wo-1", "septet-feat-7-x-y", "septet-feat-7-x-y-wo-1")
    assert FIRST.names_for("x-y") == with_number
    assert OF_TEXT.names_for("x-y") == ("septet/bug-wo-1-x-y", "septet-bug-wo-1-x-y")


@pytest.mark.parametrize("prefix", ["", "septet/", "bots/septet-", "ai."])
def test_a_prefix_begins_a_branchs_name(prefix: str) -> None:
    """A prefix is empty or the beginning of a branch name."""
    assert TypeAdapter(BranchPrefix).validate_python(prefix) == prefix


@pytest.mark.parametrize(
    "prefix", ["/", "-", "refs/", "origin/", "tags/", "a b/", "a//", "ü/", "x" * 51, "septet/issues/"]
)
def test_no_prefix_makes_something_else_of_a_branch(prefix: str) -> None:
    """A prefix that no branch name can begin with is refused."""
    with pytest.raises(ValidationError):
        TypeAdapter(BranchPrefix).validate_python(prefix)


@settings(max_examples=50, deadline=None)
@given(given_name=st.text("aB7/._-@", max_size=80), order_id=st.from_regex(r"\A[A-Za-z0-9._-]{1,30}\Z"))
def test_what_comes_out_is_always_a_branchs_name(given_name: str, order_id: str) -> None:
    """No name of an agent and no id leads to a refused branch name."""
    for number in ("", "7"):
        for name in FirstPart("septet/", IssueClass.CHORE, number, order_id).names_for(given_name):
            assert name_refusal(name) is None
