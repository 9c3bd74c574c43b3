"""Run git for Septet: with explicit directories, without an agent's hooks, and without prompts."""

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from septet.errors import GitBusyError, GitError
from septet.git.engine.git_words import shown_words
from septet.system import processes
from septet.system.durable import close_after, share_lock, take_lock

SAFE_CONFIG: Final[Mapping[str, str]] = {
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.untrackedCache": "false",
    "core.quotePath": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "core.protectHFS": "true",
    "core.protectNTFS": "true",
    "protocol.ext.allow": "never",
    "submodule.recurse": "false",
    "commit.gpgSign": "false",
    "tag.gpgSign": "false",
    "diff.external": "",
    "core.pager": "cat",
}
"""Settings by which git runs no program of an agent, and refuses names that other systems read as `.git`."""

_DEFAULT_TIMEOUT_SECONDS: Final = 120.0


@dataclass(frozen=True, slots=True)
class Git:
    """A repository for git commands. Every command names `git_dir`, and `work_tree` if there is one.

    Without these names, git could change a repository around a worktree that has lost its `.git`.
    """

    git_dir: Path
    work_tree: Path | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    """The environment of every command: PATH, HOME and the variables that the worker allows."""
    index: Path | None = None
    """The index file; `None` for the repository's own index."""
    secret_config: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Settings with keys, which no argv, environment or file on disk may show; see `open_secret_config`."""
    guard: Path | None = None
    """A file that is locked while git runs, so that nobody removes git's lock files; `None` if not needed."""

    def run(
        self,
        *args: str,
        stdin: bytes = b"",
        ok: tuple[int, ...] = (0,),
        timeout_seconds: float = _DEFAULT_TIMEOUT_SECONDS,
        limit_bytes: int | None = None,
        **config: str,
    ) -> bytes:
        """Run `git args…`, and return what it writes to stdout.

        Args:
            ok: The exit codes that do not count as errors.
            limit_bytes: The bytes of stdout after which git is killed, which does not count as an error.
            config: More settings, for example `core__autocrlf="false"` for `core.autocrlf`.

        Raises:
            GitError: git could not be started, took too long, or ended with another exit code.
        """
        completed = self.try_run(
            *args, stdin=stdin, timeout_seconds=timeout_seconds, limit_bytes=limit_bytes, **config
        )
        if completed.timed_out:
            message = f"git {args[0]} in {self.git_dir} took longer than {timeout_seconds:.0f} s."
            raise GitError(message, remedy="Check whether the disk or the remote hangs, then run `septet retry`.")
        if completed.exit_code not in ok and not completed.cut:
            shown = shown_words(completed.stderr)
            raise GitError(f"git {args[0]} in {self.git_dir} ended with {completed.exit_code}: {shown}")
        return completed.stdout

    def try_run(
        self,
        *args: str,
        stdin: bytes = b"",
        timeout_seconds: float = _DEFAULT_TIMEOUT_SECONDS,
        limit_bytes: int | None = None,
        **config: str,
    ) -> processes.Completed:
        """Run `git args…`, and return its result with any exit code.

        Raises:
            GitError: git could not be started.
        """
        try:
            with share_guard(self.guard) as inherited, open_secret_config(self.secret_config) as secret:
                program = processes.ProcessStart(
                    self._argv(args, {**config, **({"include__path": secret.path} if secret.path else {})}),
                    {**self._environment(), **secret.env},
                    self.work_tree if self.work_tree is not None else self.git_dir.parent,
                    (*inherited, *secret.descriptors),
                )
                return processes.run_program(
                    program, stdin=stdin, timeout_seconds=timeout_seconds, limit_bytes=limit_bytes
                )
        except OSError as error:
            message = f"git could not be started in {error.filename or self.git_dir}: {error.strerror}."
            raise GitError(
                message, remedy="Install git 2.38 or newer, and make sure that the folder exists."
            ) from error

    def init(self, *options: str, branch: str = "main") -> None:
        """Create an empty repository in the format that Septet can read without git.

        Raises:
            GitError: git failed.
        """
        self.run("init", "--quiet", "--template=", f"--initial-branch={branch}", *options)

    def text(self, *args: str) -> str:
        """Run `git args…`, and return the one line that it prints."""
        return self.run(*args).decode(errors="surrogateescape").strip()

    def using_index(self, index: Path) -> "Git":
        """Return the same repository with another index file."""
        return replace(self, index=index)

    def with_env(self, **values: str) -> "Git":
        """Return the same repository with more environment variables."""
        return replace(self, env={**self.env, **values})

    def _argv(self, args: tuple[str, ...], config: Mapping[str, str]) -> list[str]:
        options = {key.replace("__", "."): value for key, value in config.items()}
        settings = [part for key, value in {**SAFE_CONFIG, **options}.items() for part in ("-c", f"{key}={value}")]
        tree = [f"--work-tree={self.work_tree}"] if self.work_tree is not None else []
        return ["git", "--no-pager", "--literal-pathspecs", *settings, f"--git-dir={self.git_dir}", *tree, *args]

    def _environment(self) -> dict[str, str]:
        ceiling = self.work_tree.parent if self.work_tree is not None else self.git_dir.parent
        environment = {
            **self.env,
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_CEILING_DIRECTORIES": str(ceiling),
            "GIT_OPTIONAL_LOCKS": self.env.get("GIT_OPTIONAL_LOCKS", "0"),
            "GIT_SSH_COMMAND": self.env.get("GIT_SSH_COMMAND", "ssh -oBatchMode=yes"),
            "GIT_ADVICE": "0",
            "GIT_DEFAULT_HASH": "sha1",  # git 3 has other defaults; old gits ignore the second
            "GIT_DEFAULT_REF_FORMAT": "files",
            "LC_ALL": "C.UTF-8",
        }
        if self.index is not None:
            environment["GIT_INDEX_FILE"] = str(self.index)
        return environment


@dataclass(frozen=True, slots=True)
class SecretConfig:
    """Settings with a key for one git process, in a file in memory that the process inherits."""

    path: str = ""
    """The path of the file for git to include; empty if there is no such file."""
    descriptors: tuple[int, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The same settings as variables, on systems without files in memory; other processes can read variables."""


@contextmanager
def open_secret_config(settings: Mapping[str, str]) -> Iterator[SecretConfig]:
    """Write secret settings to a file in memory, or to variables, for a git that starts in the block.

    Raises:
        OSError: The system has no memory, or no descriptor, for the settings.
    """
    if not settings:
        yield SecretConfig()
        return
    if not hasattr(os, "memfd_create"):
        variables = {"GIT_CONFIG_COUNT": str(len(settings))}
        for number, (name, value) in enumerate(settings.items()):
            variables |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
        yield SecretConfig(env=variables)
        return
    descriptor = os.memfd_create("git-settings", os.MFD_CLOEXEC)
    with close_after(descriptor):
        os.fchmod(descriptor, 0o400)
        with os.fdopen(descriptor, "wb", closefd=False) as file:
            for name, value in settings.items():
                file.write(as_config_line(*name.rpartition(".")[::2], value))
        # Each process opens the file again, and so reads it from its beginning.
        yield SecretConfig(f"/proc/self/fd/{descriptor}", (descriptor,))


def as_config_line(section: str, variable: str, value: str | None) -> bytes:
    """Return a setting as lines of a git configuration; without a value it means true."""
    first, dot, rest = section.partition(".")
    header = f"[{first} {quote(rest)}]" if dot else f"[{first}]"
    given = "" if value is None else f" = {quote(value).replace(chr(10), chr(92) + 'n')}"
    return f"{header}\n\t{variable}{given}\n".encode(errors="surrogateescape")


def quote(text: str) -> str:
    """Return a text in quotation marks, as git's configuration requires."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


_AT_THE_TOP: Final = (
    "index.lock", "HEAD.lock", "config.lock", "packed-refs.lock", "shallow.lock", "objects/maintenance.lock",
)  # fmt: skip


def guard_of(git_dir: Path) -> Path:
    """Return the path of a repository's guard file, which stays when the repository is deleted.

    Several work orders write at once in a vault or a mirror. Each thread and each git that may make lock files
    there shares a lock on the guard. Stale lock files are deleted under an exclusive lock on the guard.
    """
    return git_dir.with_name(f"{git_dir.name}.guard")


@contextmanager
def share_guard(guard: Path | None) -> Iterator[tuple[int, ...]]:
    """Share the lock on `guard` in the block; yield the descriptors with which a child git shares the lock too.

    If this process may not write next to the repository, it makes no lock files there, and shares no lock.
    """
    if guard is None or not os.access(guard.parent, os.W_OK):
        yield ()
        return
    with share_lock(guard) as descriptor:
        yield (descriptor,)


def clear_unguarded_locks(git_dir: Path) -> None:
    """Delete a repository's stale lock files, unless a process of Septet holds the repository's guard.

    Raises:
        GitBusyError: A living process that does not use the guard may hold a lock file.
    """
    descriptor = take_lock(guard_of(git_dir))
    if descriptor is not None:
        with close_after(descriptor):
            clear_stale_locks(git_dir)


def clear_stale_locks(git_dir: Path, work_tree: Path | None = None) -> None:
    """Delete the lock files of a repository whose git was killed; follow no links.

    The caller ensures that Septet makes no lock files there meanwhile. git writes no owner into its locks: a
    process counts as the owner if it has the lock open, or if its name begins with `git` and it works in the
    repository or has the repository's path as an argument.

    Raises:
        GitBusyError: A living process holds a lock file.
    """
    found = [git_dir / name for name in _AT_THE_TOP]
    for folder, _, names in os.walk(git_dir / "refs"):
        found += (Path(folder) / name for name in names if name.endswith(".lock"))
    locks = {lock: identity for lock in found if (identity := _identity(lock))}
    if not locks:
        return
    from septet.system.lock_holder import command_line, find_lock_owner  # usually there is no lock

    holder = find_lock_owner(list(locks), [git_dir, *([work_tree] if work_tree is not None else [])])
    if holder is not None:
        raise GitBusyError(
            f"{next(iter(locks))} is held: process {holder.pid} ({command_line(holder)}) works there.",
            remedy=f"Septet tries again a few times. Check process {holder.pid}, then run `septet retry`.",
        )
    for lock, identity in locks.items():
        if _identity(lock) == identity:  # not of a git that has started since
            lock.unlink(missing_ok=True)


def _identity(lock: Path) -> tuple[int, ...]:
    """Return values that no other lock file of this name has; empty if `lock` is neither a file nor a link."""
    try:
        facts = lock.lstat()
    except OSError:
        return ()
    is_lock = stat.S_ISREG(facts.st_mode) or stat.S_ISLNK(facts.st_mode)
    return (facts.st_ino, facts.st_ctime_ns) if is_lock else ()
