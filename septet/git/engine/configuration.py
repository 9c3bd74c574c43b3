"""The engine's own git configuration, written when a worker starts, and the author of commits.

The configuration has the user's settings for keys and names.
git reads a user's configuration again with each command, and agents of the same user can write this configuration:
a proxy, a rewritten address or a trace to a file would then expose the worker's keys. So the engine's git reads
only this file, and no setting that could lead git to another host gets into it.
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
"""The settings that are taken: identity, keys, certificates and others; git prints names in lower case."""
_LEFT_OUT: Final = re.compile(r"url\..*\.(insteadof|pushinsteadof)|http\.(.*\.)?proxy|remote\..*\.proxy")
"""Settings that lead a command to another host; the worker logs a warning for each."""
ELSEWHERE: Final = "Name the address itself; for a proxy, set HTTPS_PROXY in the worker's environment."
"""The remedy for a setting that is left out."""
_ROLES: Final = ("author", "committer")


def write_configuration(path: Path, env: Mapping[str, str]) -> tuple[str, ...]:
    """Write the configuration that the engine's git reads, and return the names of settings that lead elsewhere.

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
    """Yield the settings of the user and the machine, in git's order, without settings of a repository."""
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
    """Author and committer, from git's settings `author.*`, `committer.*` and `user.*`; the default is Septet."""

    name: str
    email: str
    roles: Mapping[str, Mapping[str, str]]
    """The `name`, `email`, or both, that `author` and `committer` set for themselves."""

    @property
    def environ(self) -> dict[str, str]:
        """The environment variables that pass the identity to git."""
        usual = {"name": self.name, "email": self.email}
        return {
            f"GIT_{role}_{fact}".upper(): self.roles[role].get(fact) or usual[fact]
            for role in _ROLES
            for fact in usual
        }


def identity(git: Git) -> Identity:
    """Return the author and committer of commits in `git`.

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
