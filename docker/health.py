"""Exit 0 when the Temporal server has lately seen this container's worker ask for work, 1 when it has not."""

import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

RECENT = timedelta(minutes=2)
"""A worker's long poll lasts a minute."""
TIMEOUT_SECONDS = 8
ALL_VERSIONS = "--legacy-mode"
"""The later form of this question tells of versioned workers now and then: seen with Temporal 1.32."""


def main() -> int:
    """Ask the server and say what it knows."""
    host_file = Path(os.environ["SEPTET_STATE_DIR"]) / "host-id"
    if not host_file.exists():
        print(f"no worker has started yet: {host_file} is missing")
        return 1
    worker = f"septet@{host_file.read_text(encoding='ascii').strip()}"
    queue = os.environ.get("SEPTET_TASK_QUEUE", "septet")
    argv = [
        "temporal",
        "task-queue",
        "describe",
        ALL_VERSIONS,
        "--task-queue",
        queue,
        "--output",
        "json",
        *address(),
    ]
    answer = subprocess.run(argv, capture_output=True, check=False, timeout=TIMEOUT_SECONDS)
    if answer.returncode != 0:
        print(answer.stderr.decode(errors="replace").strip()[-500:])
        return 1
    pollers = [each for each in json.loads(answer.stdout).get("pollers") or () if each["identity"] == worker]
    polls = [datetime.fromtimestamp(each["last_access_time"]["seconds"], UTC) for each in pollers]
    print(f"last poll of {worker} on queue {queue}: {max(polls, default=None)}")
    return 0 if polls and datetime.now(UTC) - max(polls) < RECENT else 1


def address() -> list[str]:
    """Return the server's address in a form that the system resolves.

    gRPC's own resolver also asks for a TXT record, and waits 10 s for it where no DNS server answers.
    """
    name = os.environ.get("TEMPORAL_ADDRESS", "")
    return ["--address", f"passthrough:///{name}"] if name else []


if __name__ == "__main__":
    sys.exit(main())
