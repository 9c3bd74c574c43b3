"""The engine's git after the agent: the guest's changes in its worktree, and their effect on the engine's git.

Each route has the one protection without which its canary is found: the test then runs the same git in its own
description, which lacks the protection.
"""

import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fakes.attack_tables import Attack
from fakes.guests import CANARY, Machine, machine_with_canaries
from fakes.repositories import git_env, make_origin
from fakes.snapshots import LIMIT_BYTES

from septet.agents.guest.description import GuestFiles
from septet.agents.sandbox.supervisors import Supervisors
from septet.errors import SeptetError
from septet.git.commits.branches import create_branch
from septet.git.commits.commit import commit_all
from septet.git.commits.push import push
from septet.git.engine.address import parse_address
from septet.git.engine.engine import Git
from septet.git.engine.place import Place
from septet.git.evidence.difference import difference
from septet.git.evidence.evidence import gather, look, stage
from septet.git.evidence.protected_changes import protected_changes
from septet.git.snapshots.destroy import own_repository
from septet.git.vault.facts import SnapshotOptions
from septet.git.workspace.plan import plan_file
from septet.git.workspace.workspace import OrderStart, open_workspace
from septet.git.worktree.view import view_folder
from septet.protected_paths import PROTECTED, ProtectedPaths
from septet.state import StateDir

README = {"README.md": "# Sample\n", "a/b.py": "1\n"}
_SECONDS = 1.5
_RAN = ".git/ran"
Ask = Callable[[Place], str]


@dataclass(frozen=True)
class GitRoute(Attack):
    """A change of a guest, whose program knows the names of the files `secret` and `other` of the machine."""

    without: Ask
    """The output or effect of the engine's git without the protection."""


@dataclass
class GitMachine(Machine):
    place: Place | None = None

    @property
    def files(self) -> GuestFiles:
        first = super().files
        if self.place is None:
            return first
        return replace(first, workspace=self.place.worktree, objects=self.place.objects, own_folders=())

    def open_workspace(self, name: str, **facts: Any) -> Place:
        """Open a new workspace for the guest; `facts` change the engine's view of its place."""
        state = StateDir(self.root / f"state-{name}")
        state.prepare()
        address = parse_address(str(self.root / "real" / "repo.git"))
        place = open_workspace(state, address, OrderStart("wo-1", name), env=git_env(self.root / "nobody"))
        self.place = replace(place, **facts)
        return self.place


@contextmanager
def git_machine(root: Path, files: Mapping[str, str] = README) -> Iterator[GitMachine]:
    supervisors = Supervisors()
    with machine_with_canaries(root, supervisors) as first:
        make_origin(root / "real").push(files)
        yield GitMachine(root, first.sandbox, supervisors, first.neighbour, first.shared_memory_key)
    supervisors.close()


def ask_engine(place: Place) -> str:
    """Let the engine do all its work after an agent, and return all output."""
    said: list[str] = []
    asks: tuple[Ask, ...] = (
        lambda place: repr(gather(place)),
        lambda place: difference(place, limit_bytes=100_000).patch,
        _commit_and_push,
        lambda place: plan_file(place, "plan.md"),
    )
    for ask in asks:
        try:
            said.append(ask(place))
        except (SeptetError, OSError) as error:
            said.append(str(error))
    return "\n".join(said) + ran(place)


def ran(place: Place) -> str:
    """Return the canary if a program of the guest has run."""
    return CANARY if (place.worktree / _RAN).exists() else ""


def _commit_and_push(place: Place) -> str:
    create_branch(place, "feat/x")
    sha = commit_all(place, "work")
    push(place, "feat/x", sha)
    return Git(Path(place.origin), env=place.env).run("show", "--format=", sha).decode(errors="replace")


def _say(git: Git, *args: str, **config: Any) -> str:
    done = git.try_run(*args, timeout_seconds=_SECONDS, **config)
    return (done.stdout + done.stderr).decode(errors="replace") + (CANARY if done.timed_out else "")


def _plain(*args: str) -> Ask:
    """Run git in the worktree as a person would, with the worktree's settings and none of the engine's."""

    def ask(place: Place) -> str:
        try:
            done = subprocess.run(
                ["git", *args], cwd=place.worktree, env=dict(place.env), capture_output=True, timeout=_SECONDS, check=False
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return CANARY
        return (done.stdout + done.stderr).decode(errors="replace") + ran(place)

    return ask


def _without_view(*args: str) -> Ask:
    """Run the engine's git on the worktree's own `.git` instead of its view."""
    return lambda place: _say(place.git, *args) + ran(place)


def _without_look(*args: str) -> Ask:
    """Run the engine's git in its view, without the checks before it."""

    def ask(place: Place) -> str:
        folder = view_folder(place)
        return _say(Git(folder, place.worktree, place.env, index=folder / "index"), *args)

    return ask


_OTHER_WORKTREE = _plain("show", "HEAD:secret")
"""Git without a named `.git` uses the repository that the worktree names."""
_PREPARE = f"""
import subprocess
ran = os.path.abspath({_RAN!r})
evil = os.path.abspath('.git/evil')
with open(evil, 'w') as file:
    file.write('#!/bin/sh\\n: > "' + ran + '"\\nexec cat\\n')
os.chmod(evil, 0o755)
secret, other = os.path.join(root, 'secret-line'), os.path.join(root, 'other')

def setting(text):
    with open('.git/config', 'a') as file:
        file.write(text.replace('EVIL', evil) + '\\n')

def put(path, text):
    os.makedirs(os.path.dirname(path) or '.', exist_ok=True)
    with open(path, 'w') as file:
        file.write(text)

def instead(path, make):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if os.path.lexists(path):
        os.unlink(path)
    make(path)

put('new.py', 'x = 1\\n')
"""
_VIEW = "the engine's own view of the repository, with separate settings"
_SAFE = "the engine's settings on each command line"
_LOOK = "names and types in `.git` are checked before git reads them"
_PIPES = "a worktree with a pipe that git would open is refused"
_FILTER = "put('.gitattributes', '* filter=evil diff=evil\\n'); "

GIT_ROUTES = (
    GitRoute("git-fsmonitor", "name a file-system monitor in `.git/config`",
             "setting('[core]\\n fsmonitor = EVIL')", _SAFE, _plain("status")),
    GitRoute("git-hook", "leave a hook for commits",
             "put('.git/hooks/pre-commit', open(evil).read()); os.chmod('.git/hooks/pre-commit', 0o755)",
             _SAFE, _plain("-c", "user.name=a", "-c", "user.email=b", "commit", "--allow-empty", "-m", "x")),
    GitRoute("git-hooks-path", "name a folder of hooks in `.git/config`",
             "put('h/reference-transaction', open(evil).read()); os.chmod('h/reference-transaction', 0o755); "
             "setting('[core]\\n hooksPath = ' + os.path.abspath('h'))", _SAFE, _plain("branch", "b")),
    GitRoute("git-filter", "name a filter for all files",
             _FILTER + "setting('[filter \"evil\"]\\n clean = EVIL')", _VIEW, _without_view("add", "-A")),
    GitRoute("git-filter-process", "name a filter that stays running",
             _FILTER + "setting('[filter \"evil\"]\\n process = EVIL')", _VIEW, _without_view("add", "-A")),
    GitRoute("git-include", "include another file of settings",
             _FILTER + "put('.git/more', '[filter \"evil\"]\\n clean = ' + evil + '\\n'); "
             "setting('[include]\\n path = more')", _VIEW, _without_view("add", "-A")),
    GitRoute("git-textconv", "name a program that shows differences",
             _FILTER + "setting('[diff \"evil\"]\\n textconv = EVIL'); put('README.md', 'changed\\n')",
             _VIEW, _without_view("diff", "--no-ext-diff")),
    GitRoute("git-external-diff", "name a program in place of git's own differences",
             "setting('[diff]\\n external = EVIL'); put('README.md', 'changed\\n')", _SAFE, _plain("diff")),
    GitRoute("git-signing", "name a program that signs commits",
             "setting('[gpg]\\n program = EVIL\\n[commit]\\n gpgSign = true')", _SAFE,
             _plain("-c", "user.name=a", "-c", "user.email=b", "commit", "--allow-empty", "-m", "x")),
    GitRoute("git-receive-pack", "name a program at the other end of a push",
             "setting('[remote \"origin\"]\\n receivepack = EVIL')", _VIEW,
             _without_view("push", "origin", "HEAD:refs/heads/y")),
    GitRoute("git-instead-of", "rewrite the origin's address to a program",
             "setting('[url \"ext::' + evil + ' \"]\\n insteadOf = /\\n[protocol \"ext\"]\\n allow = always')", _SAFE,
             lambda place: _plain("push", place.origin, "HEAD:refs/heads/y")(place)),
    GitRoute("git-promisor", "let missing objects be fetched by a program",
             "setting('[core]\\n repositoryformatversion = 1\\n[extensions]\\n partialClone = evil\\n"
             "[remote \"evil\"]\\n url = /\\n uploadpack = EVIL\\n promisor = true')", _VIEW,
             _without_view("cat-file", "-p", "1" * 40)),
    GitRoute("git-worktree-setting", "name another folder as the worktree in `.git/config`",
             "setting('[core]\\n worktree = ' + other)", "the worktree is named on each command line",
             lambda place: _plain("add", "-A")(place) + _plain("show", ":secret")(place)),
    GitRoute("git-packed-refs", "put a link to another's file in place of `packed-refs`",
             "instead('.git/packed-refs', lambda path: os.symlink(secret, path))", _LOOK,
             _without_look("for-each-ref")),
    GitRoute("git-alternates-link", "put a link to another's file in place of `alternates`",
             "instead('.git/objects/info/alternates', lambda path: os.symlink(secret, path))", _LOOK,
             _without_look("cat-file", "-t", "1" * 40)),
    GitRoute("git-alternates", "borrow the objects of another work order",
             "instead('.git/objects/info/alternates', lambda path: put(path, "
             "open(path + '.was').read() + other + '/.git/objects\\n'))"
             .replace("instead(", "os.link('.git/objects/info/alternates', '.git/objects/info/alternates.was'); instead(")
             + "; put('.git/HEAD', OTHER_HEAD + '\\n')", _LOOK,
             lambda place: _without_look("log", "--all", "-1")(place)
             + _without_look("show", (place.worktree / ".git/HEAD").read_text(encoding="ascii").strip())(place)),
    GitRoute("git-shallow", "put a link to another's file in place of `shallow`",
             "instead('.git/shallow', lambda path: os.symlink(secret, path))", _VIEW, _without_view("log")),
    GitRoute("git-grafts", "put a link to another's file in place of `info/grafts`",
             "instead('.git/info/grafts', lambda path: os.symlink(secret, path))", _VIEW, _without_view("log")),
    GitRoute("git-fifo-refs", "put a pipe in place of `packed-refs`, so that git waits forever",
             "instead('.git/packed-refs', os.mkfifo)", _LOOK, _without_look("for-each-ref")),
    GitRoute("git-fifo-exclude", "put a pipe in place of `info/exclude`",
             "instead('.git/info/exclude', os.mkfifo)", _LOOK, _without_look("status")),
    GitRoute("git-fifo-ref", "put a pipe in place of a branch",
             "instead('.git/refs/heads/feat/y', os.mkfifo)", _LOOK, _without_look("for-each-ref")),
    GitRoute("git-fifo-index", "put a pipe in place of the index",
             "instead('.git/index', os.mkfifo)", "the agent's index is read as data", _without_view("status")),
    GitRoute("git-fifo-ignore", "put a pipe in place of `.gitignore`, in a folder",
             "os.mkfifo('a/.gitignore')", _PIPES, _without_look("status", "--untracked-files=all")),
    GitRoute("git-fifo-attributes", "put a pipe in place of `.gitattributes`",
             "os.mkfifo('.gitattributes'); put('README.md', 'changed\\n')", _PIPES, _without_look("diff")),
    GitRoute("git-fifo-nested", "put a pipe in place of the HEAD of a repository inside the worktree",
             "os.makedirs('b/.git/objects'); os.mkdir('b/.git/refs'); os.mkfifo('b/.git/HEAD')", _PIPES,
             _without_look("status")),
    GitRoute("git-file", "put a file that names another repository in place of `.git`",
             "os.rename('.git', 'was'); put('.git', 'gitdir: ' + other + '/.git\\n')",
             "`.git` is a folder, and named on each command line", _OTHER_WORKTREE),
    GitRoute("git-link", "put a link to another repository in place of `.git`",
             "os.rename('.git', 'was'); os.symlink(other + '/.git', '.git')",
             "`.git` is a folder, and named on each command line", _OTHER_WORKTREE),
    GitRoute("plan-link", "give a link to another's file for the plan",
             "os.symlink(secret, 'plan.md')", "plans are plain files of the worktree",
             lambda place: (place.worktree / "plan.md").read_text(encoding="utf-8")),
)  # fmt: skip

_GATE = "changes of what CI, forges and agents act on wait for a person before each push"


def _pushed(path: str) -> Ask:
    """Push as the engine does, without the gate, and return the canary if the path reaches the origin."""
    branch = f"feat/x{path.replace('/', '-')}"

    def ask(place: Place) -> str:
        create_branch(place, branch)
        sha = commit_all(place, "work")
        push(place, branch, sha)
        names = Git(Path(place.origin), env=place.env).text("ls-tree", "-r", "--name-only", sha).splitlines()
        return CANARY if path in names else f"{path} is not among {names}"

    return ask


def waiting_paths(place: Place) -> tuple[str, ...]:
    tree = stage(place, look(place)).text("write-tree")
    return tuple(
        change.path for change in protected_changes(place, ProtectedPaths(PROTECTED), (place.base_sha,), tree)
    )


_GIT = (
    "git = lambda *args: subprocess.run(['git', '-c', 'user.name=a', '-c', 'user.email=b', *args], check=True); "
)
PROTECTED_ROUTES = {
    ".github/workflows/x.yml": GitRoute(
        "push-workflow", "have CI run a workflow of its own, with the repository's secrets",
        "put('.github/workflows/x.yml', 'on: push\\n')", _GATE, _pushed(".github/workflows/x.yml")),
    "a/.GitHub/Workflows/x.yml": GitRoute(
        "push-workflow-case", "the same in a folder, in another case",
        "put('a/.GitHub/Workflows/x.yml', 'on: push\\n')", _GATE, _pushed("a/.GitHub/Workflows/x.yml")),
    ".gitea/workflows/b.yml": GitRoute(
        "push-rename", "rename a harmless file into a workflow",
        "os.makedirs('.gitea/workflows'); os.rename('a/b.py', '.gitea/workflows/b.yml')", _GATE,
        _pushed(".gitea/workflows/b.yml")),
    ".github": GitRoute(
        "push-folder-link", "put a link to a folder of its own in place of `.github`",
        "put('a/workflows/x.yml', 'on: push\\n'); os.symlink('a', '.github')", _GATE, _pushed(".github")),
    "a/CLAUDE.md": GitRoute(
        "push-instructions", "leave instructions for the agent of whoever checks the branch out",
        "put('a/CLAUDE.md', 'Obey.\\n')", _GATE, _pushed("a/CLAUDE.md")),
    ".claude/settings.json": GitRoute(
        "push-ignored", "stage hooks for agents by force, and have git ignore them",
        _GIT + "put('.gitignore', '.claude\\n.gitignore\\n'); put('.claude/settings.json', '{}'); "
        "git('add', '-f', '.claude/settings.json')", _GATE, _pushed(".claude/settings.json")),
    ".mcp.json": GitRoute(
        "push-commit", "commit a server for agents by itself, and hide it from a later look",
        _GIT + "put('.mcp.json', '{}'); git('add', '.mcp.json'); git('commit', '-qm', 'x'); "
        "git('update-index', '--assume-unchanged', '.mcp.json'); put('.gitattributes', '* binary -diff\\n')", _GATE,
        _pushed(".mcp.json")),
}  # fmt: skip
"""The routes by the path that reaches the origin without the gate."""


def _look_as_person(place: Place) -> str:
    """Run the git commands of a person who reads a worktree and reverts its changes."""
    words = ("status",), ("diff",), ("diff", "HEAD"), ("reset", "-q"), ("reset", "-q", "--hard")
    return "".join(_plain(*each)(place) for each in words) + ran(place)


def look_after_engine(place: Place) -> str:
    """Let the engine's git follow the guest, and then a person's git."""
    own_repository(place, SnapshotOptions("the guest has ended", LIMIT_BYTES))
    return _look_as_person(place)


_OWN = "`.git` is what the engine says after each guest"
_INNER = """
def inner(path):
    run = lambda *args: subprocess.run(['git', '-c', 'user.name=a', '-c', 'user.email=b', *args], check=True)
    run('init', '-q', path)
    run('-C', path, 'commit', '-q', '--allow-empty', '-m', 'x')
    run('add', '-f', path)
    with open(path + '/.git/config', 'a') as file:
        file.write('[core]\\n fsmonitor = ' + evil + '\\n')

put('README.md', 'changed\\n')
"""


def _of_person(name: str, attack: str, program: str) -> GitRoute:
    attack = f"have a person's `git status`, `git diff` or `git reset` run a program: {attack}"
    return GitRoute(f"person-{name}", attack, _INNER + program, _OWN, _look_as_person)


PERSON_ROUTES = (
    _of_person("fsmonitor", "by a file-system monitor", "setting('[core]\\n fsmonitor = EVIL')"),
    _of_person("hook", "by a hook for a changed index",
               "put('.git/hooks/post-index-change', open(evil).read()); "
               "os.chmod('.git/hooks/post-index-change', 0o755)"),
    _of_person("hooks-path", "by a folder of hooks in the worktree",
               "put('h/post-index-change', open(evil).read()); os.chmod('h/post-index-change', 0o755); "
               "setting('[core]\\n hooksPath = h')"),
    _of_person("include", "by settings that are included",
               "put('.git/more', '[core]\\n fsmonitor = ' + evil + '\\n'); setting('[include]\\n path = more')"),
    _of_person("include-if", "by settings that are included for this folder",
               "put('more', '[core]\\n fsmonitor = ' + evil + '\\n'); "
               "setting('[includeIf \"gitdir:**\"]\\n path = ../more')"),
    _of_person("config-worktree", "by the settings of a worktree",
               "put('.git/config.worktree', '[core]\\n fsmonitor = ' + evil + '\\n'); "
               "setting('[extensions]\\n worktreeConfig = true')"),
    _of_person("diff", "in place of git's differences", "setting('[diff]\\n external = EVIL')"),
    _of_person("attributes", "by a filter, for files that `info/attributes` names",
               "put('.git/info/attributes', '* filter=evil\\n'); setting('[filter \"evil\"]\\n clean = EVIL')"),
    _of_person("submodule", "by the settings of a repository inside the worktree", "inner('inner')"),
    _of_person("submodule-git", "by those of a submodule in `.git/modules`",
               "inner('inner'); os.makedirs('.git/modules/a'); os.rename('inner/.git', '.git/modules/a/b'); "
               "put('inner/.git', 'gitdir: ../.git/modules/a/b\\n')"),
    _of_person("submodule-file", "by those of a folder that a submodule's `.git` names",
               "inner('inner'); os.rename('inner/.git', 'elsewhere'); put('inner/.git', 'gitdir: ../elsewhere\\n')"),
    _of_person("submodule-ignored", "by those of a repository in an ignored folder that is too large to be kept",
               "put('.gitignore', 'large/\\n'); put('large/file', 'x' * (2 << 20)); inner('large/inner')"),
)  # fmt: skip


def plant(machine: GitMachine, route: GitRoute) -> str:
    head = (machine.root / "other-head").read_text(encoding="ascii").strip()
    return machine.run(f"{_PREPARE}\nOTHER_HEAD = {head!r}\n{route.program}\n")


def plant_secrets(root: Path, env: dict[str, str]) -> None:
    """Write a file with the canary, and a repository with it, at paths that the guests know."""
    (root / "secret-line").write_text(f"{CANARY}\n", encoding="utf-8")
    other = root / "other"
    shutil.rmtree(other, ignore_errors=True)
    other.mkdir()
    (other / "secret").write_text(f"{CANARY}\n", encoding="utf-8")
    person = ("-c", "user.name=a", "-c", "user.email=b")
    for args in (("init", "-q"), ("add", "-A"), (*person, "commit", "-q", "-m", "x")):
        subprocess.run(["git", *args], cwd=other, env=env, check=True)
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=other, env=env, check=True, capture_output=True).stdout
    (root / "other-head").write_bytes(head)
