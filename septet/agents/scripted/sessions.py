"""The scripted agent's files: its sessions, and how often each step was started in each folder."""

from __future__ import annotations

import binascii
import json
import os
from pathlib import Path

from septet.agents.scripted.arguments import RefusalError, is_uuid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class UnknownSessionError(Exception):
    """No session has this id."""


class ScriptedSession:
    """One session, saved from its beginning, so that a killed session can be resumed."""

    def __init__(self, path: Path | None, content: dict[str, Any]) -> None:
        """Take the content of the session's file at `path`; without a path, the session is never saved."""
        self.path = path
        self.id: str = content["id"]
        self.step: str = content.get("step", "")
        self.prompt: str = content.get("prompt", "")
        self.answer: dict[str, Any] | None = content.get("answer")
        """The session's answer, even if its printed text was malformed."""
        self.cost_usd: float = content.get("cost_usd", 0.0)
        self.model_usage: dict[str, dict[str, Any]] = content.get("model_usage", {})
        self.context_tokens: int = content.get("context_tokens", 0)

    def save(self) -> None:
        """Write the session to disk, completely or not at all."""
        if self.path is None:
            return
        content = {name: value for name, value in vars(self).items() if name != "path"}
        own = self.path.with_name(f"{self.path.name}.{os.getpid()}")
        own.write_text(json.dumps(content), encoding="ascii")
        own.replace(self.path)


class Memory:
    """The agent's folder, with files for sessions and for counts of starts."""

    def __init__(self, home: Path) -> None:
        """Take the agent's folder, and make the folders for sessions and for counts if they are missing."""
        self._sessions = home / "sessions"
        self._starts = home / "starts"
        for folder in (self._sessions, self._starts):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def begin(self, session_id: str | None) -> ScriptedSession:
        """Create, save and return a session with this id, or with a new id if `session_id` is `None`.

        Raises:
            RefusalError: The id is in use.
        """
        own = session_id or new_id()
        path = self._path(own)
        try:
            path.touch(mode=0o600, exist_ok=False)
        except FileExistsError:
            raise RefusalError(f"Error: Session ID {own} is already in use.") from None
        session = ScriptedSession(path, {"id": own})
        session.save()
        return session

    def resume(self, session_id: str) -> ScriptedSession:
        """Return the saved session with this id.

        Raises:
            UnknownSessionError: No session has this id.
        """
        if not is_uuid(session_id):
            raise UnknownSessionError
        try:
            return ScriptedSession(self._path(session_id), json.loads(self._path(session_id).read_bytes()))
        except (OSError, ValueError):
            raise UnknownSessionError from None

    def count(self, folder: str, event: str) -> int:
        """Count an event in a folder, and return the new count; several processes may count at once."""
        descriptor = os.open(self._counter(folder, event), os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
        try:
            os.write(descriptor, b".")
            return os.lseek(descriptor, 0, os.SEEK_CUR)
        finally:
            os.close(descriptor)

    def count_events(self, folder: str, event: str) -> int:
        """Return how often an event was counted in a folder."""
        path = self._counter(folder, event)
        return path.stat().st_size if path.exists() else 0

    def _counter(self, folder: str, event: str) -> Path:
        tail = "".join(character if character.isalnum() else "-" for character in folder[-100:])
        return self._starts / f"{tail}-{binascii.crc32(os.fsencode(folder)):08x}-{event}"

    def _path(self, session_id: str) -> Path:
        return self._sessions / f"{session_id}.json"


def new_id() -> str:
    """Return a random UUID."""
    text = os.urandom(16).hex()
    return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-a{text[17:20]}-{text[20:]}"
