"""An agent's session as files: taken from the CLI's own folder on one host, put into it on another."""

import io
import re
import tarfile
from pathlib import Path, PurePosixPath
from typing import Final

from septet.agents.clis.adapter import Adapter, Machine
from septet.errors import AgentError
from septet.system.durable import write_atomically

_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,100}")
_LIMIT_BYTES: Final = 64 << 20
"""A longer session stays where it is: the next host begins anew."""


def pack_session(adapter: Adapter, session_id: str, host: Machine) -> bytes | None:
    """Return a session's files as a compressed archive; `None` where there are none, or they are too large.

    Raises:
        OSError: They cannot be read.
    """
    pattern, home = adapter.capabilities.session_files, _home(adapter, host)
    if not pattern or not _ID.fullmatch(session_id):
        return None
    files = [path for path in home.glob(pattern.format(id=session_id)) if path.is_file() and not path.is_symlink()]
    if not files or sum(path.stat().st_size for path in files) > _LIMIT_BYTES:
        return None
    archive_bytes = io.BytesIO()
    with tarfile.open(fileobj=archive_bytes, mode="w:gz") as archive:
        for path in files:
            archive.add(path, str(path.relative_to(home)), recursive=False)
    return archive_bytes.getvalue()


def unpack_session(adapter: Adapter, archive_bytes: bytes, host: Machine) -> None:
    """Put a session's files where the CLI looks for them; one that is there stays.

    Raises:
        AgentError: The archive holds something that is no session of this CLI.
        OSError: The disk refused.
    """
    home, pattern = _home(adapter, host), adapter.capabilities.session_files.format(id="*")
    with tarfile.open(fileobj=io.BytesIO(archive_bytes), mode="r:gz") as archive:
        for member in archive:
            name = PurePosixPath(member.name)
            file = archive.extractfile(member) if member.isreg() else None
            if file is None or name.is_absolute() or ".." in name.parts or not name.match(pattern):
                raise AgentError(f"{member.name} is no session of {adapter.name}.")
            path = home / name
            if not path.exists():
                path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                write_atomically(path, file.read())


def _home(adapter: Adapter, host: Machine) -> Path:
    """Return the CLI's own folder."""
    variable, usual = adapter.capabilities.home
    configured = host.env.get(variable, "")
    return Path(configured) if configured else Path(usual.replace("~", host.env.get("HOME", "~"), 1)).expanduser()
