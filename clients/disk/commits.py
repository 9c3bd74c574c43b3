"""Count a work order's commits in its workspace on this host."""

from collections.abc import Mapping
from dataclasses import dataclass

from clients.disk.runs import place_of
from septet.errors import SeptetError
from septet.git.workspace.record import find_place
from septet.git.worktree.view import view_git
from septet.state import StateDir


@dataclass(frozen=True, slots=True)
class CommitCount:
    """The commits between the base and the work order's commit."""

    commits: int
    files: int
    """That differ between both."""


def count_commits(state: StateDir, git_env: Mapping[str, str], order_id: str, sha: str) -> CommitCount | None:
    """Return the number of commits and files up to `sha`; `None` if this host does not have the workspace."""
    try:
        place = find_place(state, place_of(state, order_id, now=True), git_env)
        git = view_git(place)
        commits = git.text("rev-list", "--count", f"{place.base_sha}..{sha}")
        files = git.run("diff", "--name-only", "-z", place.base_sha, sha)
    except SeptetError:
        return None
    return CommitCount(int(commits), files.count(b"\0"))
