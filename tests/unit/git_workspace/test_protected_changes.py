"""Changes of protected paths in a work order: by name, mode, rename, deletion and symlink."""

from collections.abc import Callable
from pathlib import Path

import pytest
from fakes.repositories import Origin, git, make_origin

from septet.git.engine.place import Place
from septet.git.evidence.evidence import look, stage
from septet.git.evidence.protected_changes import ProtectedChange, protected_changes
from septet.protected_paths import PROTECTED, ProtectedPaths

WORKFLOW = ".github/workflows/ci.yml"
Edit = Callable[[Path], None]


@pytest.fixture(scope="session")
def first_origin(tmp_path_factory: pytest.TempPathFactory) -> Origin:
    """Return an origin with protected files, and with symlinks from and to protected paths."""
    origin = make_origin(tmp_path_factory.mktemp("linking"))
    (origin.checkout / "docs").mkdir()
    (origin.checkout / "CLAUDE.md").symlink_to("docs/guide.md")
    (origin.checkout / "docs" / "guide.md").symlink_to("notes.md")
    (origin.checkout / ".claude").symlink_to("tools/claude")
    names = (WORKFLOW, "ci.yml", "docs/notes.md", "tools/claude/settings.json", "src/app.py", "README.md")
    origin.push({name: f"{name} as it was\n" for name in names})
    return origin


def write(name: str, content: str = "new\n") -> Edit:
    def edit(worktree: Path) -> None:
        (worktree / name).parent.mkdir(parents=True, exist_ok=True)
        (worktree / name).write_text(content)

    return edit


def move(old: str, new: str) -> Edit:
    def edit(worktree: Path) -> None:
        (worktree / new).parent.mkdir(parents=True, exist_ok=True)
        (worktree / old).rename(worktree / new)

    return edit


def link(name: str, target: str) -> Edit:
    def edit(worktree: Path) -> None:
        if (worktree / name).is_dir():
            (worktree / name).rename(worktree / "aside")
        (worktree / name).unlink(missing_ok=True)
        (worktree / name).parent.mkdir(parents=True, exist_ok=True)
        (worktree / name).symlink_to(target)

    return edit


def changes(place: Place, *since: str) -> dict[str, str]:
    """Return the worktree's changes of protected paths, as a commit would contain them."""
    return {change.path: change.what for change in found(place, *since)}


def found(place: Place, *since: str) -> tuple[ProtectedChange, ...]:
    tree = stage(place, look(place)).text("write-tree")
    return protected_changes(place, ProtectedPaths(PROTECTED), since or (place.base_sha,), tree)


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        (write("sub/CLAUDE.md"), {"sub/CLAUDE.md": "added"}),
        (write(WORKFLOW), {WORKFLOW: "changed"}),
        (lambda at: (at / WORKFLOW).unlink(), {WORKFLOW: "deleted"}),
        (lambda at: (at / WORKFLOW).chmod(0o755), {WORKFLOW: "mode changed"}),
        (move("ci.yml", ".github/workflows/new.yml"), {".github/workflows/new.yml": "added"}),
        (move(WORKFLOW, "old.yml"), {WORKFLOW: "deleted"}),
        (move(WORKFLOW, ".github/workflows/b.yml"), {WORKFLOW: "deleted", ".github/workflows/b.yml": "added"}),
        (link(".github", "docs"), {WORKFLOW: "deleted", ".github": "added"}),
        (link("sub/.github", "../ci"), {"sub/.github": "added"}),
        (link("x", ".github/workflows"), {"x": "added, a symlink to .github/workflows"}),
        (link("docs/x", "../.GITHUB"), {"docs/x": "added, a symlink to .GITHUB"}),
        (link("x", "/srv/repo/.claude"), {"x": "added, a symlink to /srv/repo/.claude"}),
        (link("README.md", "x/../.mcp.json"), {"README.md": "changed, a symlink to .mcp.json"}),
        # the targets of protected symlinks in the base
        (link("docs/guide.md", "../README.md"), {"docs/guide.md": "changed, through CLAUDE.md"}),
        (move("src/app.py", "docs/guide.md"), {"docs/guide.md": "changed, through CLAUDE.md"}),
        (write("docs/notes.md"), {"docs/notes.md": "changed, through CLAUDE.md"}),
        (write("tools/claude/settings.json"), {"tools/claude/settings.json": "changed, through .claude"}),
        (write("tools/other.json"), {}),
        (link("x", "x"), {}),
        (link("x", "../../../etc/passwd"), {}),
        (write(".claude-x/a\u200b\x1bb"), {".claude-x/a\\u200b\\x1bb": "added"}),
    ],
)  # fmt: skip
def test_each_way_to_change_a_protected_path_is_found(place: Place, edit: Edit, expected: dict[str, str]) -> None:
    """A change counts by both names of a rename, and by the targets of symlinks."""
    edit(place.worktree)
    assert changes(place) == expected


def test_a_submodule_in_the_place_of_a_folder_is_found(place: Place) -> None:
    """A submodule in the place of a protected folder counts as added, since its files are unknown."""
    git(place.worktree, "rm", "-rq", "--cached", ".github")
    entry = f"160000 {place.base_sha} 0\t.github"
    git(place.worktree, "update-index", "--add", "--index-info", stdin=f"{entry}\n".encode())
    git(place.worktree, "commit", "-q", "-m", "work")
    head = git(place.worktree, "rev-parse", "HEAD")
    found_ones = protected_changes(place, ProtectedPaths(PROTECTED), (place.base_sha,), head)
    assert [(change.path, change.what) for change in found_ones] == [(".github", "added"), (WORKFLOW, "deleted")]


def test_what_every_commit_before_has_differently_counts(place: Place) -> None:
    """A change counts only if it differs from all given commits, such as the base and the pushed branch."""
    write(WORKFLOW)(place.worktree)
    write("CLAUDE.md.d/AGENTS.md")(place.worktree)
    git(place.worktree, "add", "-A")
    git(place.worktree, "commit", "-q", "-m", "pushed already")
    head = git(place.worktree, "rev-parse", "HEAD")
    write(".mcp.json")(place.worktree)
    assert set(changes(place)) == {WORKFLOW, "CLAUDE.md.d/AGENTS.md", ".mcp.json"}
    assert set(changes(place, place.base_sha, head)) == {".mcp.json"}


def test_an_id_is_for_one_content_of_one_path(place: Place) -> None:
    """The same content of a path has the same id; another content or mode has another id."""
    ids = []
    for edit in (
        write(WORKFLOW),
        write(WORKFLOW),
        write(WORKFLOW, "other\n"),
        lambda at: (at / WORKFLOW).chmod(0o755),
    ):
        edit(place.worktree)
        ids.append(found(place)[0].id)
    assert ids[0] == ids[1]
    assert len(set(ids)) == 3
