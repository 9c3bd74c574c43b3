"""The diagnosis of a disk error: from the machine's errors and git's words, never from an agent's words."""

import errno
import os
from pathlib import Path

import pytest

from septet.errors import (
    AgentCrashedError,
    DiskFullError,
    DiskReadOnlyError,
    GitError,
    MachineBusyError,
    MachineFailedError,
    RemoteFullError,
    SeptetError,
    SetupError,
)
from septet.system.disk import diagnosed

FULL, READ_ONLY = os.strerror(errno.ENOSPC), os.strerror(errno.EROFS)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (GitError(f"error: file write error: {FULL}"), DiskFullError),
        (GitError(f"fatal: cannot create directory: {READ_ONLY}"), DiskReadOnlyError),
        (OSError(errno.ENOSPC, FULL, "x"), DiskFullError),
        (OSError(errno.EROFS, READ_ONLY, "x"), DiskReadOnlyError),
        (OSError(errno.EIO, "Input/output error", "x"), MachineFailedError),
        (OSError(errno.EMFILE, os.strerror(errno.EMFILE), "x"), MachineBusyError),
        (OSError(errno.ENFILE, os.strerror(errno.ENFILE)), MachineBusyError),
        (BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN)), MachineBusyError),
        (GitError("cannot fork() for git-remote-https: Resource temporarily unavailable"), MachineBusyError),
        (GitError("unable to create thread: Resource temporarily unavailable"), MachineBusyError),
        (RemoteFullError(f"remote: fatal: write error: {FULL}"), RemoteFullError),
        (SetupError(f"npm ci failed: ENOSPC: {FULL}, write"), SetupError),
        (SetupError("make failed: sh: Too many open files"), SetupError),
        (AgentCrashedError(f"The agent ended with 1 and said: {FULL}"), AgentCrashedError),
    ],
)
def test_the_machine_and_git_are_believed_and_agents_are_not(
    tmp_path: Path, error: SeptetError | OSError, kind: type[SeptetError]
) -> None:
    """Errors of the machine and of git name the disk, and words of an agent or of a set-up do not."""
    assert type(diagnosed(error, tmp_path)) is kind


def test_a_machine_s_error_behind_an_agent_s_is_believed(tmp_path: Path) -> None:
    """An error of the machine behind an agent's error names the disk."""
    error = AgentCrashedError("The agent was not started.")
    error.__cause__ = OSError(errno.EROFS, READ_ONLY, "x")
    assert type(diagnosed(error, tmp_path)) is DiskReadOnlyError
