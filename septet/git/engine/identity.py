"""Find the author and committer of commits in git's settings; the default is Septet's. No settings are written."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from septet.git.engine.engine import Git

_NAME: Final = "Septet"
_EMAIL: Final = "septet@localhost"
_ROLES: Final = ("author", "committer")


@dataclass(frozen=True, slots=True)
class Identity:
    """Author and committer, from git's settings `author.*`, `committer.*` and `user.*`."""

    name: str
    """The value of `user.name`."""
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
    return Identity(values.get("user.name") or _NAME, values.get("user.email") or _EMAIL, roles)
