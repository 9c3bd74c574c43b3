"""Exit 0 when the Temporal server has lately seen this container's worker ask for work, 1 when it has not."""

import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

RECENT = timedelta(minutes=2)
"""A worker's long poll lasts a minute."""
TIMEOUT_SECONDS = 4
"""For one answer: the image's health check has ten."""
ASKED_FOR = (("--legacy-mode",), ("--select-all-active", "--select-unversioned"))
"""Two forms of the same question: which of them tells of a versioned worker depends on the server's release."""


def main() -> int:
    """Ask the server and say what it knows."""
    host_file = Path(os.environ["SEPTET_STATE_DIR"]) / "host-id"
    if not host_file.exists():
        print(f"no worker has started yet: {host_file} is missing")
        return 1
    worker = f"septet@{host_file.read_text(encoding='ascii').strip()}"
    queue = os.environ.get("SEPTET_TASK_QUEUE", "septet")
    for form in ASKED_FOR:
        argv = ["temporal", "task-queue", "describe", "--task-queue", queue, "--output", "json", *form, *address()]
        answer = subprocess.run(argv, capture_output=True, check=False, timeout=TIMEOUT_SECONDS)
        if answer.returncode != 0:
            print(answer.stderr.decode(errors="replace").strip()[-500:])
            return 1
        pollers = json.loads(answer.stdout).get("pollers") or ()
        polls = [polled_at(each) for each in pollers if each["identity"] == worker]
        print(f"last poll of {worker} on queue {queue}: {max(polls, default=None)}")
        if polls and datetime.now(UTC) - max(polls) < RECENT:
            return 0
    return 1


def polled_at(poller: dict[str, Any]) -> datetime:
    """Return when a worker last asked for work, in either form of the answer."""
    if "lastAccessTime" in poller:
        return datetime.fromisoformat(poller["lastAccessTime"])
    return datetime.fromtimestamp(poller["last_access_time"]["seconds"], UTC)


def address() -> list[str]:
    """Return the server's address in a form that the system resolves.

    gRPC's own resolver also asks for a TXT record, and waits 10 s for it where no DNS server answers.
    """
    name = os.environ.get("TEMPORAL_ADDRESS", "")
    return ["--address", f"passthrough:///{name}"] if name else []


if __name__ == "__main__":
    sys.exit(main())
