"""The branch on which an issue builds if the issue depends on several issues."""

import pytest

from septet.pipelines.schedule import below_of, held_by
from septet.pipelines.views import IssueState


def issue(name: str, *depends_on: str, builds_on: str = "", done: int = 0) -> IssueState:
    """Return an issue that is done at position `done`, or not done for 0."""
    return IssueState(
        issue_id=name,
        order_id=f"pl-{name}",
        depends_on=depends_on,
        builds_on=builds_on,
        done_at=f"snapshot-{name}" if done else "",
        executed_at=f"2026-01-01T00:00:0{done}.000Z" if done else None,
    )


A = issue("a", done=1)
ON_A = issue("b", "a", builds_on="a", done=2)
ALONE = issue("c", done=3)


@pytest.mark.parametrize(
    ("depends_on", "below", "lacking"),
    [
        ((), None, ()),
        (("a",), "a", ()),
        (("a", "b"), "b", ()),
        (("b", "c"), "c", ("b",)),
        (("a", "b", "c"), "b", ("c",)),
        (("c", "d"), "c", ("d",)),
    ],
    ids=["nothing", "one", "a chain", "the last of equal ones", "the one that holds most", "one that is not done"],
)
def test_a_branch_stands_on_the_one_that_holds_most(
    depends_on: tuple[str, ...], below: str | None, lacking: tuple[str, ...]
) -> None:
    """An issue builds on the branch that contains most of its dependencies, or on the latest of equal branches."""
    known = {each.issue_id: each for each in (A, ON_A, ALONE, issue("d"))}
    found = below_of(issue("z", *depends_on), known)
    assert (found.issue_id if found else None) == below
    if found is not None:
        held = held_by(found, known)
        assert tuple(name for name in depends_on if name not in held) == lacking
