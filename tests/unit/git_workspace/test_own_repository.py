"""After a guest the engine restores its own `.git`: the guest's programs and links are removed and kept."""

import os
import shlex
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from fakes.repositories import git
from fakes.shell_programs import write_program
from fakes.snapshots import begin, snapshot_of

from septet.errors import SnapshotError
from septet.git.engine.place import Place
from septet.git.snapshots.destroy import disarm_repository, own_repository, return_to
from septet.git.snapshots.repository_stamp import gitlinks, is_own, note_baseline
from septet.git.snapshots.restore import restore
from septet.git.vault.facts import SnapshotOptions
from septet.git.vault.vault import find, list_snapshots, vault_at

LIMIT = 10_000_000
OPTIONS = SnapshotOptions("a guest left something", LIMIT)
LOOKS = (("status",), ("diff",), ("diff", "HEAD"), ("reset", "-q"), ("reset", "-q", "--hard"))


@pytest.fixture
def began(place: Place) -> Place:
    """Return a workspace before its first agent."""
    note_baseline(place, begin(place, LIMIT))
    return place


def _set_up(place: Place) -> None:
    """Note the present state as the result of the set-up command."""
    note_baseline(place, snapshot_of(place, limit_bytes=LIMIT))


def _evil(place: Place) -> str:
    """Return a program that writes a mark when it runs; no git may start it."""
    program = f"#!/bin/sh\n: > {shlex.quote(str(_mark(place)))}\ncat\n"
    return str(write_program(place.worktree / ".git" / "evil", program))


def _mark(place: Place) -> Path:
    return place.worktree.parent / "ran"


def _look(tree: Path, env: dict[str, str]) -> None:
    for words in LOOKS:
        subprocess.run(["git", *words], cwd=tree, env=env, capture_output=True, check=False, timeout=20)


def _program(path: Path, place: Place) -> None:
    write_program(path, Path(_evil(place)).read_text(encoding="utf-8"))


def _config(place: Place, *words: str, folder: str = ".git") -> None:
    git(place.worktree, "config", "--file", f"{folder}/config", *words)


def _inner(place: Place) -> Path:
    """Make a repository inside the worktree that the index lists as a submodule."""
    inner = place.worktree / "inner"
    git(place.worktree, "init", "-q", "inner")
    git(inner, "-c", "user.name=a", "-c", "user.email=b", "commit", "-q", "--allow-empty", "-m", "x")
    git(place.worktree, "add", "inner")
    return inner


def fsmonitor(place: Place) -> None:
    _config(place, "core.fsmonitor", _evil(place))


def hook(place: Place) -> None:
    _program(place.worktree / ".git" / "hooks" / "post-index-change", place)


def hooks_that_nobody_lists(place: Place) -> None:
    hook(place)
    (place.worktree / ".git" / "hooks").chmod(0o111)


def hooks_path(place: Place) -> None:
    _program(place.worktree / "h" / "post-index-change", place)
    _config(place, "core.hooksPath", "h")


def include(place: Place) -> None:
    (place.worktree / ".git" / "more").write_text(f"[core]\n\tfsmonitor = {_evil(place)}\n", encoding="utf-8")
    _config(place, "include.path", "more")


def worktree_config(place: Place) -> None:
    _config(place, "extensions.worktreeConfig", "true")
    (place.worktree / ".git" / "config.worktree").write_text(
        f"[core]\n\tfsmonitor = {_evil(place)}\n", encoding="utf-8"
    )


def common_folder(place: Place) -> None:
    other = place.worktree / "other"
    (place.worktree / ".git").rename(other)
    git(place.worktree, "config", "--file", "other/config", "core.fsmonitor", str(other / "evil"))
    (place.worktree / ".git").mkdir()
    for name in ("HEAD", "index", "config"):
        (place.worktree / ".git" / name).write_bytes((other / name).read_bytes())
    for name in ("objects", "refs"):
        (place.worktree / ".git" / name).mkdir()
    _evil(place)
    (place.worktree / ".git" / "evil").rename(other / "evil")
    (place.worktree / ".git" / "commondir").write_text("../other\n", encoding="utf-8")


def submodule_of_the_index(place: Place) -> None:
    _inner(place)
    _config(place, "core.fsmonitor", _evil(place), folder="inner/.git")


def submodule_by_a_file(place: Place) -> None:
    inner = _inner(place)
    (inner / ".git").rename(place.worktree / "elsewhere")
    (inner / ".git").write_text("gitdir: ../elsewhere\n", encoding="utf-8")
    _config(place, "core.fsmonitor", _evil(place), folder="elsewhere")


def submodule_of_git(place: Place) -> None:
    inner = _inner(place)
    modules = place.worktree / ".git" / "modules" / "deep"
    modules.mkdir(parents=True)
    (inner / ".git").rename(modules / "inner")
    (inner / ".git").write_text("gitdir: ../.git/modules/deep/inner\n", encoding="utf-8")
    _config(place, "core.fsmonitor", _evil(place), folder=".git/modules/deep/inner")


def submodule_in_a_new_index(place: Place) -> None:
    submodule_of_the_index(place)
    git(place.worktree, "-c", "core.fsmonitor=false", "update-index", "--index-version", "4")


def submodule_in_a_split_index(place: Place) -> None:
    submodule_of_the_index(place)
    git(place.worktree, "-c", "core.fsmonitor=false", "update-index", "--split-index")


POISONS = (
    fsmonitor, hook, hooks_that_nobody_lists, hooks_path, include, worktree_config, common_folder,
    submodule_of_the_index, submodule_by_a_file, submodule_of_git,
    submodule_in_a_new_index, submodule_in_a_split_index,
)  # fmt: skip


def _poison(place: Place, poison: object) -> None:
    assert callable(poison)
    poison(place)
    with (place.worktree / "README.md").open("a", encoding="utf-8") as file:
        file.write("more\n")


def test_gitlinks_are_found_in_an_index_of_each_version(tmp_path: Path) -> None:
    """Gitlinks are found in each version of the index, among many files and names that are similar or long."""
    git(tmp_path, "init", "-q", ".")
    blob = git(tmp_path, "hash-object", "-w", "--stdin", stdin=b"x")
    files = [
        f"100644 {blob}\t{path}" for path in (f"c/{'n' * 200}", *(f"a/{number}.txt" for number in range(300)))
    ]
    links = [f"160000 {'1' * 40}\t{path}" for path in ("a/150.d", "b/sub", "z")]
    git(tmp_path, "update-index", "--index-info", stdin="".join(f"{line}\n" for line in files + links).encode())
    for version in ("2", "4"):
        git(tmp_path, "update-index", "--index-version", version)
        assert {b"a/150.d", b"b/sub", b"z"} <= set(gitlinks(f"{tmp_path}/.git"))


@pytest.mark.parametrize("poison", POISONS, ids=lambda poison: poison.__name__)
def test_a_persons_git_runs_nothing_of_a_guests(began: Place, env: dict[str, str], poison: object) -> None:
    """A person's git runs no program of the guest after the engine restored `.git`, and `.git` still works."""
    _poison(began, poison)
    paths, _ = own_repository(began, OPTIONS)
    assert paths
    assert is_own(began)
    _look(began.worktree, env)
    assert not _mark(began).exists()
    assert git(began.worktree, "rev-parse", "--git-dir", env=env) == ".git"


@pytest.mark.parametrize("poison", POISONS, ids=lambda poison: poison.__name__)
def test_each_poison_runs_where_the_engine_does_not_come_by(
    began: Place, env: dict[str, str], poison: object
) -> None:
    """Without the engine each poison runs its program, so each poison is real."""
    _poison(began, poison)
    _look(began.worktree, env)
    assert _mark(began).exists()


@pytest.mark.parametrize("poison", POISONS, ids=lambda poison: poison.__name__)
def test_a_restored_snapshot_is_as_harmless(
    began: Place, env: dict[str, str], tmp_path: Path, poison: object
) -> None:
    """A restored snapshot runs no program of the guest, in a person's folder and in a workspace."""
    _poison(began, poison)
    rescue = snapshot_of(began, "rescue", LIMIT)
    restore(vault_at(began), rescue, tmp_path / "back")
    _look(tmp_path / "back", env)
    assert not _mark(began).exists()
    return_to(began, list_snapshots(vault_at(began))[0], OPTIONS)
    return_to(began, rescue, OPTIONS)
    _look(began.worktree, env)
    assert not _mark(began).exists()


def test_an_untouched_repository_costs_no_snapshot(began: Place) -> None:
    """Files, commits and branches alone cause no snapshot."""
    before = list_snapshots(vault_at(began))
    (began.worktree / "new.py").write_text("x = 1\n", encoding="utf-8")
    git(began.worktree, "checkout", "-q", "-b", "work")
    git(began.worktree, "add", "-A")
    git(began.worktree, "-c", "user.name=a", "-c", "user.email=b", "commit", "-q", "-m", "x")
    assert own_repository(began, OPTIONS) == ((), None)
    assert list_snapshots(vault_at(began)) == before


def test_settings_that_are_harmless_survive(began: Place) -> None:
    """A harmless setting survives by name and value; the same name with another value does not survive."""
    kept = {
        "submodule.lib.url": "https://example.org/lib.git",
        "submodule.lib.active": "true",
        "core.sparseCheckout": "true",
        "extensions.worktreeConfig": "true",
        "extensions.partialClone": "origin",
        "branch.work.remote": "origin",
        "branch.work.merge": "refs/heads/work",
        "remote.origin.promisor": "true",
        "remote.origin.partialclonefilter": "blob:none",
    }
    gone = {
        "submodule.x.url": "ext::sh -c evil",
        "submodule.x.update": "!evil",
        "branch.x.remote": "ext::evil",
        "branch.x.merge": "main",
        "extensions.partialClone2": "evil",
        "remote.origin.uploadpack": "evil",
        "remote.origin.url": "/evil",
        "remote.more.url": "https://example.org",
        "alias.st": "!evil",
        "user.name": "Evil",
    }
    for name, value in {**kept, **gone}.items():
        _config(began, name, value)
    own_repository(began, OPTIONS)
    settings = git(began.worktree, "config", "--file", ".git/config", "--list")
    for name, value in kept.items():
        assert git(began.worktree, "config", "--file", ".git/config", name) == value
    assert "evil" not in settings.lower()
    assert git(began.worktree, "config", "--file", ".git/config", "remote.origin.url") == began.origin


def test_what_set_up_wrote_survives_as_it_is(began: Place) -> None:
    """The set-up's hooks, hook folder and filters survive, and return if a guest changed or removed them."""
    (began.worktree / ".husky").mkdir()
    (began.worktree / ".husky" / "pre-commit").write_text("echo checked\n", encoding="utf-8")
    lfs = {"clean": "git-lfs clean -- %f", "smudge": "git-lfs smudge -- %f", "process": "git-lfs filter-process"}
    for name, value in lfs.items():
        _config(began, f"filter.lfs.{name}", value)
    _config(began, "core.hooksPath", ".husky")
    hooked = began.worktree / ".git" / "hooks" / "pre-push"
    hooked.parent.mkdir(exist_ok=True)
    hooked.write_text("#!/bin/sh\n", encoding="utf-8")
    before = (began.worktree / ".git" / "config").read_bytes()
    _set_up(began)
    (began.worktree / "src" / "app.py").write_text("x\n", encoding="utf-8")
    assert own_repository(began, OPTIONS) == ((), None)
    assert (began.worktree / ".git" / "config").read_bytes() == before
    _config(began, "filter.lfs.clean", "evil")
    _config(began, "--unset", "core.hooksPath")
    hooked.write_text("#!/bin/sh\nevil\n", encoding="utf-8")
    own_repository(began, OPTIONS)
    assert git(began.worktree, "config", "--file", ".git/config", "filter.lfs.clean") == lfs["clean"]
    assert git(began.worktree, "config", "--file", ".git/config", "core.hooksPath") == ".husky"
    assert hooked.read_text(encoding="utf-8") == "#!/bin/sh\n"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("core.hooksPath", ".husky"),
        ("core.hooksPath", "{root}/.husky"),
        ("core.fsmonitor", ".husky/monitor"),
        ("filter.x.clean", "sh .husky/monitor"),
        ("filter.x.clean", "python3 -m filters"),
        ("include.path", "../.gitconfig"),
    ],
)
def test_a_setting_of_set_up_counts_while_the_file_that_it_names_is_the_same(
    began: Place, name: str, value: str
) -> None:
    """A setting of the set-up survives only while the file that it names is unchanged."""
    (began.worktree / ".husky").mkdir()
    (began.worktree / ".husky" / "monitor").write_text("exit 0\n", encoding="utf-8")
    (began.worktree / ".gitconfig").write_text("", encoding="utf-8")
    _config(began, name, value.format(root=began.worktree))
    _set_up(began)
    own_repository(began, OPTIONS)
    assert value.rsplit("/", maxsplit=1)[-1] in (began.worktree / ".git" / "config").read_text(encoding="utf-8")
    (began.worktree / ".husky" / "monitor").write_text("evil\n", encoding="utf-8")
    (began.worktree / ".gitconfig").write_text("[core]\n", encoding="utf-8")
    own_repository(began, OPTIONS)
    assert value.rsplit("/", maxsplit=1)[-1] not in (began.worktree / ".git" / "config").read_text(
        encoding="utf-8"
    )


def test_a_hook_of_a_submodule_goes(began: Place) -> None:
    """A hook of a submodule is removed, and its sample hooks stay, since git runs no sample."""
    submodule_of_git(began)
    hooks = began.worktree / ".git/modules/deep/inner/hooks"
    _program(hooks / "post-checkout", began)
    _program(hooks / "pre-push.sample", began)
    own_repository(began, OPTIONS)
    assert (hooks / "pre-push.sample").exists()
    assert not (hooks / "post-checkout").exists()
    assert git(began.worktree / "inner", "rev-parse", "--abbrev-ref", "HEAD")


def test_a_linked_worktree_is_rescued_and_unlinked(began: Place) -> None:
    """A linked worktree is removed, its branch stays, and the rescue has its files and its index."""
    git(began.worktree, "worktree", "add", "-q", "side", "-b", "side")
    (began.worktree / "side" / "new.py").write_text("x\n", encoding="utf-8")
    git(began.worktree / "side", "add", "-A")
    paths, rescue = own_repository(began, OPTIONS)
    assert ".git/worktrees" in paths
    assert rescue is not None
    assert not (began.worktree / ".git" / "worktrees").exists()
    assert not (began.worktree / "side").exists()
    assert git(began.worktree, "rev-parse", "side") == began.base_sha
    held = vault_at(began).run("ls-tree", "-r", "--name-only", find(vault_at(began), rescue.name).commit)
    assert b"state/worktrees/side/index" in held
    assert b"side/new.py" in held


def test_a_linked_repository_is_not_followed(began: Place, env: dict[str, str]) -> None:
    """A `.git` that is a link to another repository is not followed."""
    (began.worktree / ".git").rename(began.worktree / "was")
    git(began.worktree, "config", "--file", "was/config", "core.fsmonitor", "touch ran; false")
    (began.worktree / ".git").symlink_to("was")
    own_repository(began, OPTIONS)
    _look(began.worktree, {**env, "GIT_CEILING_DIRECTORIES": str(began.worktree.parent)})
    assert not (began.worktree / "ran").exists()


@pytest.mark.parametrize("kind", ["fifo", "missing"])
def test_a_configuration_that_is_no_file_is_written_again(began: Place, kind: str) -> None:
    """A FIFO in the place of the configuration is renamed, and a missing configuration is written again."""
    config = began.worktree / ".git" / "config"
    config.unlink()
    if kind == "fifo":
        os.mkfifo(config)
    own_repository(began, OPTIONS)
    assert git(began.worktree, "config", "--file", ".git/config", "remote.origin.url") == began.origin
    assert len(list(config.parent.glob("config.left-*"))) == (kind == "fifo")


@pytest.mark.parametrize(
    "name", ["worktrees/x/.git", "commondir/x/.git", "config/.git", "hooks/.git", "x/.git/worktrees"]
)
def test_a_repository_in_an_odd_place_keeps_nothing_from_going(began: Place, name: str) -> None:
    """A folder with the name of a file and a nested repository do not stop the removal."""
    (began.worktree / ".git" / "config").rename(began.worktree / ".git" / "was")
    inner = began.worktree / ".git" / name
    inner.mkdir(parents=True)
    (inner / "HEAD").write_text("x\n", encoding="utf-8")
    (inner / "config").write_text("[core]\n\tfsmonitor = x\n", encoding="utf-8")
    own_repository(began, OPTIONS)
    config = git(began.worktree, "config", "--file", ".git/config", "--list")
    assert f"remote.origin.url={began.origin}" in config.splitlines()
    assert not list((began.worktree / ".git").glob("worktrees/*/.git/config"))
    assert is_own(began)


@pytest.mark.parametrize("poison", [fsmonitor, hook, common_folder, worktree_config, submodule_of_git])
def test_where_no_snapshot_can_be_taken_it_is_renamed(began: Place, env: dict[str, str], poison: object) -> None:
    """If no snapshot is possible, the guest's settings are renamed, and a later call restores `.git`."""
    _poison(began, poison)
    settings = (began.worktree / ".git" / "config").read_bytes()
    with (began.worktree / "large").open("wb") as file:
        file.truncate(1 << 30)
    limited = replace(began, tree_limit_bytes=1 << 20)
    with pytest.raises(SnapshotError):
        own_repository(limited, OPTIONS)
    disarm_repository(limited)
    _look(began.worktree, env)
    assert not _mark(began).exists()
    assert settings in [path.read_bytes() for path in (began.worktree / ".git").glob("config.left-*")]
    (began.worktree / "large").unlink(missing_ok=True)
    own_repository(limited, OPTIONS)
    assert git(began.worktree, "config", "--file", ".git/config", "remote.origin.url") == began.origin
