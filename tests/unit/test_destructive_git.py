"""The source keeps the project's rules for code that loses work, starts a process or reads the environment.

The test reads the syntax tree, so that no comment or docstring breaks a rule. Code that must lose work goes
through `septet/git/snapshots/destroy.py`, which takes a verified snapshot first.
"""

import ast
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

pytestmark = pytest.mark.law

Rule = Callable[[ast.Module], Iterator[ast.AST]]

ROOT = Path(__file__).parents[2]
PACKAGES = ("septet", "activities", "workflows", "workers", "clients")

DESTRUCTIVE: dict[str, tuple[str, ...]] = {
    "reset": ("--hard", "--merge", "--keep"),
    "read-tree": ("-u", "--reset"),
    "worktree": ("remove", "prune"),
    "branch": ("-D", "-d", "-M", "-f", "--delete", "--force"),
    "update-ref": ("-d",),
    "push": ("--force", "-f", "--delete", "--mirror", "--prune"),
    "reflog": ("expire", "delete"),
    "checkout-index": ("-f", "--force"),
    **dict.fromkeys(("clean", "checkout", "switch", "restore", "rm", "stash", "gc", "prune", "filter-branch"), ()),
}
"""By git command: the words that make it destructive; empty for a command that always is."""

REMOVALS = {"rmtree", "removedirs", "remove_folder"}
RUNNERS = {"run", "try_run", "text", "start_detached", "Popen", "call", "check_call", "check_output"}

MAY_DESTROY = {
    # The only code that overwrites or removes workspaces.
    "septet/git/snapshots/destroy.py": (
        "git.run('read-tree', '-m', '-u', was, to, timeout_seconds=_CHECKOUT_SECONDS)",
        "remove_folder(aside)",
    ),
    # Removes what is over: snapshots, and folders of closed work orders.
    "septet/git/snapshots/forget.py": (
        "remove_folder(aside)",
        "vault.run('update-ref', '-d', ref_of(snapshot.name), snapshot.commit)",
        "vault.run('update-ref', '-d', ref)",
        "vault.run('prune', f'--expire={expiry}', timeout_seconds=PACKING_SECONDS)",
        "remove_folder(path)",
    ),
    # Removes an agent's files in a home after its sessions were taken out.
    "septet/agents/runs/homes.py": ("shutil.rmtree(gone, ignore_errors=True)",),
    # Writes into a new folder that no agent has seen, and whose name is no workspace's.
    "septet/git/workspace/workspace.py": (
        "shutil.rmtree(clone, ignore_errors=True)",
        "mirror.run('read-tree', '-m', '-u', place.base_sha, timeout_seconds=_CHECKOUT_SECONDS)",
    ),
    # Writes into a new folder too, for a workspace that moves; and removes the loser of a race for a remote.
    "septet/git/checkpoints/move.py": ("shutil.rmtree(fresh, ignore_errors=True)", "shutil.rmtree(fresh)"),
    "septet/git/checkpoints/checkpoint_remote.py": ("shutil.rmtree(unfinished)",),
    # Removes the engine's own folders: an unfinished mirror, a mirror for a repair, and a view.
    "septet/git/workspace/mirror.py": (
        "shutil.rmtree(fresh, ignore_errors=True)",
        "shutil.rmtree(fresh, ignore_errors=True)",
        "shutil.rmtree(unfinished, ignore_errors=True)",
    ),
    "septet/git/worktree/view.py": ("shutil.rmtree(folder, ignore_errors=True)",),
    # Moves a person's clean checkout with a merge and back: git refuses to lose a file.
    "septet/forges/local/merge.py": (
        "checkout.run('read-tree', '-m', '-u', before, commit)",
        "checkout.run('read-tree', '-m', '-u', commit, before)",
        "checkout.try_run('read-tree', '-n', '-m', '-u', before, after)",
    ),
    # Removes an unfinished copy of the backup before the copy is made again.
    "septet/backup.py": ("shutil.rmtree(self.target / name, ignore_errors=True)",),
    # Removes an old version that a CLI unpacked; no agent ever wrote there.
    "septet/agents/turns/guest_home.py": ("shutil.rmtree(path)",),
    # Removes the state of earlier demos, whose work orders are of a sample repository.
    "clients/cli/start/demo.py": ("shutil.rmtree(used.parent, ignore_errors=True)",),
    # Removes the home and the run of a trial of `septet doctor --try`, which belongs to no work order.
    "clients/cli/doctor/agent_checks.py": (
        "shutil.rmtree(runtime.runs.folder_of(order_id), ignore_errors=True)",
        "shutil.rmtree(home, ignore_errors=True)",
    ),
}
"""By module: the calls that may stay. A new call takes a snapshot first, or a comment says why none is needed."""

MAY_REMOVE_AND_LAY = {
    "septet.git.snapshots.removal": {"septet/git/snapshots/destroy.py", "septet/git/snapshots/forget.py"},
    "septet.git.snapshots.lay": {
        "septet/git/snapshots/destroy.py",
        "septet/git/snapshots/restore.py",  # into a new or empty folder
        "septet/git/snapshots/patch.py",  # into a temporary folder
    },
}
MAY_START_PROCESSES = {
    "septet/system/processes.py",
    "septet/agents/sandbox/supervisors.py",
    "septet/agents/supervisor/agent_process.py",  # the fork that becomes the agent
    "septet/agents/supervisor/as_own_user.py",  # becomes the program of its arguments
    "septet/system/keys.py",  # starts itself again to hide its keys
    "septet/agents/supervisor/recorder.py",
    "septet/agents/supervisor/fork_server.py",
    "septet/agents/proxy/way_out.py",  # the fork that becomes a guest's proxy
    "septet/agents/sandbox/connections.py",
}
MAY_READ_THE_ENVIRONMENT = {
    "septet/settings.py",
    "septet/system/keys.py",  # takes keys out of the environment
    "septet/agents/supervisor/as_own_user.py",  # passes its environment to the program that it becomes
    "septet/agents/scripted/program.py",  # a program of its own
}


def destroys(module: ast.Module) -> Iterator[ast.AST]:
    """Yield each call of a destructive git command, each list of its words, and each removal of a folder."""
    for node in ast.walk(module):
        match node:
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
                if name in REMOVALS or _is_destructive(_words(node.args), named=name in RUNNERS):
                    yield node
            case ast.Tuple() | ast.List() if _is_destructive(_words([node]), named=False):
                yield node
            case ast.Constant(value=str(text)) if text.startswith("git "):
                if _is_destructive(text.split(), named=True):
                    yield node


def starts_processes(module: ast.Module) -> Iterator[ast.AST]:
    """Yield each start of a process, each import that hides a start, and each `shell=True`."""
    for node in ast.walk(module):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="subprocess"))):
                yield node
            case ast.keyword(arg="shell"):
                yield node
            case ast.Attribute(value=ast.Name(id="os"), attr=name) if name.startswith(
                ("system", "popen", "exec", "spawn", "posix_spawn", "fork")
            ):
                yield node
            case ast.Attribute(attr="create_subprocess_exec" | "create_subprocess_shell"):
                yield node
            case ast.ImportFrom(module="subprocess" | "pty" | "multiprocessing" | "concurrent.futures.process"):
                yield node
            case ast.Import(names=names) if any(_hides_processes(alias) for alias in names):
                yield node


def reads_environment(module: ast.Module) -> Iterator[ast.AST]:
    """Yield each use of the environment of this process."""
    words = {"environ", "environb", "getenv", "getenvb", "putenv", "unsetenv"}
    for node in ast.walk(module):
        match node:
            case ast.Attribute(value=ast.Name(id="os"), attr=name) if name in words:
                yield node
            case ast.ImportFrom(module="os", names=names) if any(alias.name in words for alias in names):
                yield node


def _is_destructive(words: list[str], *, named: bool) -> bool:
    """Return whether the words are a destructive git command.

    Behind the word `git` and its options any word may be the command; otherwise only the first may be. With
    `named` the words can be only a git command.
    """
    with_git = words[:1] == ["git"]
    for place in range(1, len(words)) if with_git else range(len(words[:1])):
        marks, rest = DESTRUCTIVE.get(words[place]), words[place + 1 :]
        if marks == () and (named or with_git or any(word.startswith("-") for word in rest)):
            return True
        if marks and set(marks).intersection(word.partition("=")[0] for word in rest):
            return True
    return False


def _words(nodes: list[ast.expr]) -> list[str]:
    """Return the literal words in order, also from lists and starred arguments."""
    found: list[str] = []
    for node in nodes:
        match node:
            case ast.Constant(value=str(word)):
                found.append(word)
            case ast.Tuple(elts=inner) | ast.List(elts=inner):
                found += _words(inner)
            case ast.Starred(value=inner):
                found += _words([inner])
    return found


def _hides_processes(alias: ast.alias) -> bool:
    return alias.name in {"pty", "multiprocessing"} or (alias.name == "subprocess" and alias.asname is not None)


@cache
def _sources() -> dict[str, ast.Module]:
    paths = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
    return {path.relative_to(ROOT).as_posix(): ast.parse(path.read_text(encoding="utf-8")) for path in paths}


def _broken(rule: Rule) -> dict[str, list[str]]:
    found = {path: [ast.unparse(node) for node in rule(module)] for path, module in _sources().items()}
    return {path: nodes for path, nodes in found.items() if nodes}


def test_only_the_choke_point_destroys() -> None:
    """Only the listed calls run destructive git or remove a folder."""
    assert {path: tuple(calls) for path, calls in _broken(destroys).items()} == MAY_DESTROY


@pytest.mark.parametrize(("imported", "allowed"), MAY_REMOVE_AND_LAY.items())
def test_only_the_choke_point_has_its_tools(imported: str, allowed: set[str]) -> None:
    """Only the listed modules import the functions that remove or overwrite files of a workspace."""
    importers = {
        path
        for path, module in _sources().items()
        for node in ast.walk(module)
        if (isinstance(node, ast.ImportFrom) and node.module == imported)
        or (isinstance(node, ast.Import) and any(alias.name == imported for alias in node.names))
    }
    assert importers == allowed


def test_only_two_modules_and_the_supervisor_start_processes() -> None:
    """Only the listed modules start processes, and no module uses a shell."""
    assert set(_broken(starts_processes)) == MAY_START_PROCESSES


def test_only_the_settings_read_the_environment() -> None:
    """Only the listed modules read the environment; all other code gets it as an argument."""
    assert set(_broken(reads_environment)) == MAY_READ_THE_ENVIRONMENT


BREAKING: list[tuple[Rule, str]] = [
    (destroys, "git.run('reset', '--hard', sha)"),
    (destroys, "git.run(*('clean', '-fdx'), timeout_seconds=9.0)"),
    (destroys, "place.git.run('checkout', '--force', branch)"),
    (destroys, "processes.run(['git', '-C', str(folder), '-c', 'a.b=c', 'reset', '--hard'], env=env)"),
    (destroys, "argv = ('clean', '-fd')"),
    (destroys, "argv = 'git reset --hard'.split()"),
    (destroys, "shutil.rmtree(place.worktree)"),
    (destroys, "remove_folder(place.worktree)"),
    (starts_processes, "subprocess.run(argv)"),
    (starts_processes, "from subprocess import Popen"),
    (starts_processes, "import subprocess as sp"),
    (starts_processes, "import multiprocessing"),
    (starts_processes, "processes.run(argv, shell=True)"),
    (starts_processes, "os.system('true')"),
    (starts_processes, "os.execvp('true', [])"),
    (starts_processes, "await asyncio.create_subprocess_exec('true')"),
    (reads_environment, "home = os.environ['HOME']"),
    (reads_environment, "home = os.getenv('HOME')"),
    (reads_environment, "from os import environ"),
]


@pytest.mark.parametrize(("rule", "source"), BREAKING, ids=[source for _, source in BREAKING])
def test_a_module_that_breaks_a_rule_is_found(rule: Rule, source: str) -> None:
    """Each rule finds a violation in each of its forms."""
    assert list(rule(ast.parse(f"async def somewhere():\n    {source}\n")))


@pytest.mark.parametrize(
    "source",
    [
        "git.run('reset', '--soft', 'HEAD~1')",
        "git.run('push', '--force-with-lease=refs/heads/x:abc', url)",
        "@app.command('restore')\ndef restore(): ...",
        "words = ['clean', 'tidy', 'typo']",
        "'''Never does what `git reset --hard` would do.'''",
        "process: subprocess.Popen[bytes]",
        "settings.environ['HOME']",
    ],
)
def test_what_breaks_no_rule_is_let_be(source: str) -> None:
    """A harmless form of the same words breaks no rule."""
    module = ast.parse(source)
    assert [*destroys(module), *starts_processes(module), *reads_environment(module)] == []
