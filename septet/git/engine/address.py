"""The address of a repository's origin, with its project and the name for its folders on a host."""

import hashlib
import os.path
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal
from urllib.parse import SplitResult, unquote, urlsplit

from pydantic import ValidationError

from septet.contracts.order import WorkOrderInput
from septet.errors import InvalidInputError

_REMEDY: Final = "Give an absolute path, or a file://, https://, ssh:// or git@host:owner/name address."
_DEFAULT_PORTS: Final = {"https": 443, "http": 80, "ssh": 22}
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_HOST: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?|[0-9A-Fa-f:]*:[0-9A-Fa-f:]*")
_USER: Final = r"[A-Za-z0-9_][A-Za-z0-9._-]*"
_FOLDER: Final = re.compile(r"(?!-|\.\.?$)[A-Za-z0-9._~+@-]+")
_SCP: Final = re.compile(rf"(?:{_USER}@)?(?P<host>[^@:/\[\]]+):(?P<path>.+)")


@dataclass(frozen=True, slots=True)
class Address:
    """A repository's address that may be shown and stored, because it has no credentials."""

    url: str
    """The absolute path, or the URL, that git uses."""
    kind: Literal["local", "remote"]
    """`local` for a folder on this machine, `remote` for a URL; only this host can work on a local repository."""
    host: str
    """The server's name in lower case, with a port if it is not the default; empty for a local repository."""
    project: str
    """The repository's name, such as `o/r`; for a local one, its folder's name."""
    path: Path | None
    """The path of a local repository; `None` for a remote one."""
    key: str
    """A short name for folders, equal for all addresses of one repository, such as https and ssh."""

    def beside(self, project: str) -> "Address":
        """Return the address of another repository on the same server, such as a fork.

        Raises:
            InvalidInputError: The repository is a folder, or `project` is not the name of a repository.
        """
        before, found, after = self.url.rpartition(self.project)
        if self.path is not None or not found:
            raise _refusal(self.url, "has no other repositories next to it", "Name a repository of a forge.")
        other = parse_address(f"{before}{project}{after}")
        if (other.host, other.project) != (self.host, project):
            raise _refusal(project, "is not the name of a repository", "Give OWNER/NAME, as the forge shows it.")
        return other


def parse_address(repository: str, *, home: Path | None = None, cwd: Path | None = None) -> Address:
    """Return the address that a text names; this reads neither disk nor network.

    Args:
        repository: A path, or an address in one of git's forms; credentials in the address are dropped.
        home: The folder that `~` stands for.
        cwd: The folder to which a path may be relative; without it, relative paths are refused.

    Raises:
        InvalidInputError: The form is not allowed, or git could read the text as an option.
    """
    text = repository.strip()
    if not text or text.startswith("-") or any(ord(character) < ord(" ") for character in text):
        raise _refusal(repository, "is not the address of a repository")
    if "://" in text:
        return _from_url(text)
    if "::" in text.split("/", 1)[0]:
        raise _refusal(text, "asks for a transport that is not allowed")
    if scp := _SCP.fullmatch(text):
        return _remote(text, text, scp["host"], None, scp["path"])
    return _local(text, home, cwd)


def _from_url(text: str) -> Address:
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise _refusal(text, "is not a valid URL") from error
    if parts.scheme == "file":
        if parts.netloc not in {"", "localhost"}:
            raise _refusal(text, "names a file on another host")
        return _local(unquote(parts.path), None, None)
    host = parts.hostname or ""
    if parts.scheme == "http" and host not in _LOOPBACK:
        raise _refusal(text, "would send everything unencrypted", f"Use https://{host}{parts.path}.")
    if parts.scheme not in _DEFAULT_PORTS:
        raise _refusal(text, f"asks for the transport {parts.scheme}, which is not allowed")
    if parts.query or parts.fragment:
        raise _refusal(text, "holds a query or a fragment", "Give the address that git clone takes.")
    if port == _DEFAULT_PORTS[parts.scheme]:
        port = None
    return _remote(text, _url(text, parts, port), host, port, parts.path)


def _url(text: str, parts: SplitResult, port: int | None) -> str:
    """Return the URL without its password; only an ssh URL keeps its user, because a user could be a token."""
    user, host = parts.username if parts.scheme == "ssh" else None, parts.hostname or ""
    if user and not re.fullmatch(_USER, user):
        raise _refusal(text, "names no valid user")
    account = f"{user}@" if user else ""
    return f"{parts.scheme}://{account}{_with_port(host, port)}{parts.path.rstrip('/')}"


def _with_port(host: str, port: int | None) -> str:
    bracketed = f"[{host}]" if ":" in host else host
    return bracketed if port is None else f"{bracketed}:{port}"


def _remote(text: str, url: str, host: str, port: int | None, path: str) -> Address:
    project = path.strip("/").removesuffix(".git")
    if not _HOST.fullmatch(host):
        raise _refusal(text, "names no valid host")
    if not all(_FOLDER.fullmatch(folder) for folder in project.split("/")):
        raise _refusal(text, "names no valid repository")
    own_port = port if url.startswith("http") else None  # an ssh port does not say on which port the forge answers
    return Address(
        url=url.rstrip("/"),
        kind="remote",
        host=_with_port(host.lower(), own_port),
        project=project,
        path=None,
        key=_key(project, f"{_with_port(host.lower(), port)}/{project}"),
    )


def _local(text: str, home: Path | None, cwd: Path | None) -> Address:
    if text.startswith("~"):
        if home is None or not (text == "~" or text.startswith("~/")):
            raise _refusal(text, "names a home folder that is not known here")
        text = f"{home}{text[1:]}"
    if not text.startswith("/"):
        if cwd is None:
            raise _refusal(text, "is relative, and the worker's current folder is not yours")
        text = f"{cwd}/{text}"
    path = Path(os.path.normpath("/" + text.lstrip("/")))
    if path.name == ".git":
        path = path.parent
    project = path.name.removesuffix(".git")
    if not project:
        raise _refusal(text, "names no repository")
    return Address(str(path), "local", "", project, path, _key(project, f"file:{path}"))


def _key(project: str, identity: str) -> str:
    slug = re.sub(r"[^A-Za-z0-9._-]+", "-", project).strip("-.")[:40] or "repository"
    return f"{slug}-{hashlib.sha256(identity.encode(errors='surrogateescape')).hexdigest()[:8]}"


def _refusal(text: str, why: str, remedy: str = _REMEDY) -> InvalidInputError:
    """Return the error for a refused address, without the parts that could be a password."""
    scheme, separator, rest = text.partition("://") if "://" in text else ("", "", text)
    shown = re.split(r"[?#]", scheme + separator + rest.rpartition("@")[2], maxsplit=1)[0][:200]
    return InvalidInputError(f"repository: {shown!r} {why}.", remedy=remedy)


def with_project(order: WorkOrderInput) -> WorkOrderInput:
    """Return the work order with its project, if the repository's address shows the project.

    A wrong address changes nothing here: the worker reports it later.
    """
    if order.project is not None:
        return order
    try:
        project = parse_address(order.repository, home=Path("/")).project  # a name is the same in every home
        return WorkOrderInput.model_validate({**dict(order), "project": project})
    except (InvalidInputError, ValidationError):
        return order
