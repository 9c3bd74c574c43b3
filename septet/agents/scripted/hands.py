"""The tools of the scripted agent: they really change files, and print events as claude's tools do."""

from __future__ import annotations

import json
import os
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from septet.agents.scripted.events import Stream

    Done = tuple[str, Mapping[str, object]]

_SIGKILL = 9


class Hands:
    """Tools that write, edit and delete files in one folder; a script can make the tools kill this process."""

    def __init__(self, stream: Stream, folder: Path, crash_after: int | None, *, leave_notes: bool) -> None:
        """Take the stream for events and the folder; after `crash_after` edits, the process kills itself."""
        self.tied = False
        """Whether the tools do nothing, because only the answer is needed."""
        self.leave_notes = leave_notes
        """Whether to write a note if a plan spells out no change."""
        self.touched: list[str] = []
        """The changed files, each once, in the order of the first change."""
        self._stream = stream
        self.folder = folder
        self._crash_after = crash_after
        self._edits = 0

    def write(self, path: str, content: str) -> None:
        """Create or replace the file at `path`."""
        full = self.folder / path

        def act() -> Done:
            before = read(full)
            _write(full, content)
            kind = "update" if before is not None else "create"
            record = {"type": kind, "filePath": str(full), "content": content, "originalFile": before}
            return f"File {kind}d successfully at: {full}", record

        self._use("Write", {"file_path": str(full), "content": content}, path, act)

    def edit(self, path: str, old: str, new: str) -> None:
        """Replace every `old` in the file at `path`."""
        full = self.folder / path

        def act() -> Done:
            before = read(full) or ""
            _write(full, before.replace(old, new))
            record = {"filePath": str(full), "oldString": old, "newString": new, "originalFile": before}
            return f"The file {full} has been updated successfully.", record

        given = {"file_path": str(full), "old_string": old, "new_string": new, "replace_all": True}
        self._use("Edit", given, path, act)

    def delete(self, path: str) -> None:
        """Delete the file at `path`."""

        def act() -> Done:
            (self.folder / path).unlink()
            return "(Bash completed with no output)", {"stdout": "", "stderr": "", "interrupted": False}

        self._use("Bash", {"command": f"rm -- {json.dumps(path)}", "description": f"Delete {path}"}, path, act)

    def note_edit(self, path: str) -> None:
        """Do nothing; a subclass may act after the edit of a file."""

    def crash_before_answering(self) -> None:
        """Kill this process if the script demands a crash that has not happened yet."""
        if self._crash_after is not None:
            os.kill(os.getpid(), _SIGKILL)

    def _use(self, tool: str, arguments: dict[str, object], path: str, act: Callable[[], Done]) -> None:
        if self.tied:
            return
        call = self._stream.call(tool, **arguments)
        try:
            text, record = act()
        except OSError as error:
            failure = f"Error: {error.strerror}: {path}"
            self._stream.print_result(call, failure, failure, has_failed=True)
            return
        self.note_edit(path)
        if path not in self.touched:
            self.touched.append(path)
        self._stream.print_result(call, text, record)
        self._edits += 1
        if self._edits == self._crash_after:
            os.kill(os.getpid(), _SIGKILL)


def read(path: Path) -> str | None:
    """Return a file's text with its line ends unchanged; `None` if the file cannot be read."""
    try:
        return path.read_bytes().decode(errors="surrogateescape")
    except OSError:
        return None


def _write(path: Path, content: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode(errors="surrogateescape"))
