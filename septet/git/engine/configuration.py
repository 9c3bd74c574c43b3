"""Septet's own git configuration, written when a worker starts; and the author of commits.

Septet's git does not read the user's configuration, because agents of the same user can write it: a proxy, a
rewritten address or a trace to a file would then expose the worker's keys. Septet's own file has a copy of the
user's settings for keys and names, but no setting that could lead git to another server.
"""

import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from septet.errors import GitError
from septet.git.engine.engine import Git, as_config_line
from septet.system import processes
from septet.system.durable import write_atomically

_TAKEN: Final = re.compile(
    r"""
      user\.(name|email|signingkey)
    | (author|committer)\.(name|email)
    | gpg\..*
    | credential\..*
    | http\.(.*\.)?(sslcainfo|sslcapath|sslcert|sslkey|sslcertpasswordprotected|sslverify|sslbackend|extraheader)
    | ssh\.variant | core\.sshcommand
    | safe\.directory
    """,
    re.VERBOSE,
)
"""The user's settings that are copied: identity, keys and certificates; git prints their names in lower case."""
_LEFT_OUT: Final = re.compile(r"url\..*\.(insteadof|pushinsteadof)|http\.(.*\.)?proxy|remote\..*\.proxy")
"""The user's settings that lead git to another server; they are not copied, and the worker warns of each."""
ELSEWHERE: Final = "Name the address itself; for a proxy, set HTTPS_PROXY in the worker's environment."
"""The remedy in the warning about a setting that was not copied."""
_ROLES: Final = ("author", "committer")


def write_configuration(path: Path, env: Mapping[str, str]) -> tuple[str, ...]:
    """Write the configuration of Septet's git; return the names of settings that `_LEFT_OUT` excludes.

    Raises:
        GitError: git could not be started, or cannot read the user's configuration.
    """
    content, left_out = b"", []
    for name, value in _user_settings(env):
        section, _, variable = name.rpartition(".")
        if _TAKEN.fullmatch(f"{section.lower()}.{variable}"):
            content += as_config_line(section, variable, value)
        elif _LEFT_OUT.fullmatch(f"{section.lower()}.{variable}"):
            left_out.append(name)
    write_atomically(path, content)
    return tuple(dict.fromkeys(left_out))


def _user_settings(env: Mapping[str, str]) -> Iterator[tuple[str, str | None]]:
    """Yield the names and values of the user's and the machine's settings, in git's order."""
    try:
        listed = processes.run(
            ["git", "config", "--null", "--list"],
            env={**env, "GIT_DIR": "/dev/null", "LC_ALL": "C.UTF-8"},
            cwd=Path("/"),
            timeout_seconds=30.0,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise GitError(f"git could not be started: {error}.", remedy="Install git 2.38 or newer.") from error
    if listed.exit_code != 0:
        shown = listed.stderr.decode(errors="replace").strip()
        raise GitError(f"git cannot read your configuration: {shown}", remedy="Correct ~/.gitconfig.")
    for line in listed.stdout.decode(errors="surrogateescape").split("\0")[:-1]:
        name, is_given, value = line.partition("\n")
        yield name, value if is_given else None


@dataclass(frozen=True, slots=True)
class Identity:
    """The author and the committer of commits: from git's settings, or else Septet itself."""

    name: str
    email: str
    roles: Mapping[str, Mapping[str, str]]
    """The settings `name` and `email` for `author` and `committer`; they take precedence over those of `user`."""

    @property
    def environ(self) -> dict[str, str]:
        """The environment variables that give git the author and the committer."""
        usual = {"name": self.name, "email": self.email}
        return {
            f"GIT_{role}_{fact}".upper(): self.roles[role].get(fact) or usual[fact]
            for role in _ROLES
            for fact in usual
        }


def identity(git: Git) -> Identity:
    """Return the author and the committer of commits in the repository `git`.

    Raises:
        GitError: git could not be started.
    """
    settings = git.try_run("config", "--null", "--get-regexp", r"^(user|author|committer)\.(name|email)$").stdout
    values = dict(
        line.split("\n", 1) for line in settings.decode(errors="surrogateescape").split("\0") if "\n" in line
    )
    roles = {
        role: {fact: value for fact in ("name", "email") if (value := values.get(f"{role}.{fact}"))}
        for role in _ROLES
    }
    return Identity(values.get("user.name") or "Septet", values.get("user.email") or "septet@localhost", roles)
