"""Exit 0 when the Temporal server has lately seen this container's worker ask for work, 1 when it has not."""

import json
import os
import socket
import subprocess
import sys
from datetime import UTC, datetime, timedelta

RECENT = timedelta(minutes=2)
"""A worker's long poll lasts a minute."""
TIMEOUT_SECONDS = 8
ALL_VERSIONS = ("--select-all-active", "--select-unversioned")


def main() -> int:
    """Ask the server and say what it knows."""
    queue = os.environ.get("SEPTET_TASK_QUEUE", "septet")
    argv = ["temporal", "task-queue", "describe", "--task-queue", queue, "--output", "json", *ALL_VERSIONS]
    answer = subprocess.run(argv, capture_output=True, check=False, timeout=TIMEOUT_SECONDS)
    if answer.returncode != 0:
        print(answer.stderr.decode(errors="replace").strip()[-500:])
        return 1
    here = f"@{socket.gethostname()}"
    seen = [poller for poller in json.loads(answer.stdout).get("pollers") or () if here in poller["identity"]]
    newest = max((datetime.fromisoformat(poller["lastAccessTime"]) for poller in seen), default=None)
    print(f"last poll of queue {queue} from {here}: {newest}")
    return 0 if newest and datetime.now(UTC) - newest < RECENT else 1


if __name__ == "__main__":
    sys.exit(main())
