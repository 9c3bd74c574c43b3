"""The evidence of git and the forge about a trial. Nothing here uses the engine."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from septet.system import processes

_FORGE = "refs/septet/forge"
_MINUTES = 600.0


@dataclass(frozen=True, slots=True)
class Delivered:
    """The origin's content of one work order."""

    order: str
    branches: tuple[str, ...] = ()
    commits: int = 0
    """The commits on all its branches beyond the base."""
    pushes: int = 0
    """The updates of its branches."""
    pull_requests: int = 0
    """The pull requests whose branch exists."""

    @property
    def completed(self) -> bool:
        """Return whether a branch with a commit has a pull request."""
        return self.pull_requests > 0 and self.commits > 0


def delivered(origin: Path, order: str, env: Mapping[str, str]) -> Delivered:
    """Return an origin's content of a work order, whose branches all have the order's id in their names."""
    refs = _git(origin, env, "for-each-ref", "--format=%(refname)", "refs/heads").split()
    branches = [ref for ref in refs if f"-{order}-" in ref]
    if not branches:
        return Delivered(order)
    commits = _git(origin, env, "rev-list", "--count", *branches, "--not", "refs/heads/main")
    logs = [origin / "logs" / ref for ref in branches]
    pushes = sum(len(log.read_bytes().splitlines()) for log in logs if log.exists())
    heads = [f"refs/heads/{pull['head']}" for pull in _pull_requests(origin, env)]
    pull_requests = sum(head in branches for head in heads)
    return Delivered(order, tuple(branches), int(commits), pushes, pull_requests)


def head_of(origin: Path, branch: str, env: Mapping[str, str]) -> str | None:
    """Return the commit of a branch; `None` without the branch."""
    return _git(origin, env, "for-each-ref", "--format=%(objectname)", f"refs/heads/{branch}") or None


def blobs_in(repository: Path, env: Mapping[str, str]) -> set[str]:
    """Return the ids of all objects that any ref of a repository reaches."""
    return {
        line.partition(" ")[0] for line in _git(repository, env, "rev-list", "--objects", "--all").splitlines()
    }


def blobs_in_vaults(folder: Path, env: Mapping[str, str]) -> set[str]:
    """Return the ids of all objects in snapshots below a folder: of hosts' vaults and the checkpoint remote."""
    kept = (*folder.glob("host-*/vaults/*.git"), *(path.parent for path in folder.glob("checkpoints/**/HEAD")))
    return set().union(*(blobs_in(repository, env) for repository in kept))


def blobs_in_tree(folder: Path, env: Mapping[str, str]) -> set[str]:
    """Return git's ids of all files below a folder, without git's own files."""
    files = [path for path in folder.rglob("*") if path.is_file() and ".git" not in path.parts]
    if not files:
        return set()
    names = "".join(f"{path}\n" for path in files).encode()
    done = processes.run(["git", "hash-object", "--no-filters", "--stdin-paths"], env=env, stdin=names)
    return set(done.stdout.decode().split())


def _pull_requests(origin: Path, env: Mapping[str, str]) -> list[dict[str, str]]:
    if not _git(origin, env, "for-each-ref", _FORGE):
        return []
    names = _git(origin, env, "ls-tree", "--name-only", _FORGE).split()
    asked = "".join(f"{_FORGE}:{name}\n" for name in names if name.startswith("pull"))
    told = _git(origin, env, "cat-file", "--batch=", "--buffer", stdin=asked.encode())
    decoder, pulls = json.JSONDecoder(), []
    while told := told.lstrip():
        pull, end = decoder.raw_decode(told)
        pulls.append(pull)
        told = told[end:]
    return pulls


def _git(repository: Path, env: Mapping[str, str], *args: str, stdin: bytes = b"") -> str:
    argv = ["git", "--git-dir", str(repository), *args]
    done = processes.run(argv, env=env, timeout_seconds=_MINUTES, stdin=stdin)
    if done.exit_code != 0:
        raise RuntimeError(f"git {args[0]} of {repository}: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout.decode().strip()
