"""Turn the repository or issue that a person names into an absolute path or an address."""

import os.path
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from septet.errors import UsageError

_GITHUB: Final = "https://github.com"
_PAGE: Final = re.compile(
    r"(?P<repository>[a-z+]+://[^?#]+?)/(?:-/)?(?:issues?|pulls?|merge_requests)/(?P<number>[1-9][0-9]{0,8})(?:[/?#].*)?"
)
"""The pattern of the address of an issue's or a pull request's page in a browser."""
_SHORT: Final = re.compile(
    r"(?P<project>[A-Za-z0-9][A-Za-z0-9-]*/(?!\.{1,2}(?:#|$))[A-Za-z0-9._-]+?)(?:\.git)?(?:#(?P<number>[1-9][0-9]{0,8}))?"
)
_NUMBER: Final = re.compile(r"#?([1-9][0-9]{0,8})")
_WITH_HOST: Final = re.compile(r"[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}/.+/.+")


@dataclass(frozen=True, slots=True)
class RepositoryReference:
    """The repository that a person named, and the issue if the person named an issue."""

    repository: str
    issue: int | None = None


def parse_reference(text: str, *, folder: Path | None = None) -> RepositoryReference:
    """Return the repository and the issue that a text names: `o/r#42` and the address of an issue name both.

    `o/r` is a folder if such a folder exists here, otherwise a repository on GitHub. A relative path starts at
    `folder`, by default this process's folder.
    """
    text, folder = text.strip(), folder or Path.cwd()
    if not text.startswith((".", "/", "~", "-")) and not _is_folder(folder, text):
        text = with_host(text)
    if (page := issue_page(text)) is not None:
        return page
    address, sign, number = text.partition("#")
    if sign and "://" in address and number.isascii() and number.isdigit() and int(number):
        return RepositoryReference(address, int(number))
    is_address = "://" in text or (":" in text and not text.startswith((".", "/", "~")))
    return RepositoryReference(text if is_address else os.path.normpath(folder / Path(text).expanduser()))


def issue_number(text: str) -> int | None:
    """Return the issue number in a text such as `42` or `#42`; `None` for other texts and for names of folders."""
    match = _NUMBER.fullmatch(text.strip())
    return int(match[1]) if match is not None and not _is_folder(Path.cwd(), text.strip()) else None


def issue_page(text: str) -> RepositoryReference | None:
    """Return the repository and the issue whose page has this address; `None` for another text."""
    page = _PAGE.fullmatch(with_host(text.strip()))
    return RepositoryReference(page["repository"], int(page["number"])) if page is not None else None


def with_host(text: str) -> str:
    """Return the address that the short form `o/r` or `host/o/r` stands for; return any other text unchanged."""
    if "://" in text:
        return text
    if (short := _SHORT.fullmatch(text)) is not None:
        number = f"#{short['number']}" if short["number"] else ""
        return f"{_GITHUB}/{short['project']}{number}"
    return f"https://{text}" if _WITH_HOST.fullmatch(text) else text


def whole_path(repository: str) -> str:
    """Return a repository in the form that a worker needs: an absolute path, or an address for `o/r`."""
    return parse_reference(repository).repository


def enclosing_repository(folder: Path) -> Path | None:
    """Return the repository at a folder, or the closest repository above the folder; `None` without one."""
    return next((path for path in (folder, *folder.parents) if is_repository(path)), None)


def repository_here(how: str) -> str:
    """Return the path of the repository at or above this process's folder.

    Raises:
        UsageError: There is no such repository; the remedy shows `how`, the way to name a repository.
    """
    here = enclosing_repository(Path.cwd())
    if here is None:
        remedy = f"Name one: {how}."
        raise UsageError("This folder is not in a git repository, and no repository is named.", remedy=remedy)
    return str(here)


def is_repository(path: Path) -> bool:
    """Return whether a folder is a checkout, or a bare repository."""
    return (path / ".git").exists() or all((path / part).exists() for part in ("HEAD", "objects", "refs"))


def _is_folder(folder: Path, text: str) -> bool:
    try:
        return (folder / text).is_dir()
    except (OSError, ValueError):
        return False
