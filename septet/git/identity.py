"""Who commits: the worker's own identity where git knows one, else Septet's. Nobody's settings are written."""

from typing import Final

from septet.git.engine import Git

_NAME: Final = "Septet"
_EMAIL: Final = "septet@localhost"


def identity(git: Git) -> tuple[str, str]:
    """Return name and e-mail address of whoever commits in `git`.

    Raises:
        GitError: git could not be started.
    """
    settings = git.try_run("config", "--null", "--get-regexp", r"^user\.(name|email)$").stdout
    values = dict(
        line.split("\n", 1) for line in settings.decode(errors="surrogateescape").split("\0") if "\n" in line
    )
    return values.get("user.name") or _NAME, values.get("user.email") or _EMAIL
