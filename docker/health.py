"""Exit 0 when the Temporal server has lately seen this container's worker ask for work, 1 when it has not.

The worker asks the server every few seconds, and writes the answer into `health.json` in its state directory. It
also gives that file the time of now, whatever the server says. With `--alive` only that counts: an outage of the
server is no reason to restart the worker.
"""

import json
import os
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

RECENT_POLL = timedelta(minutes=2)
"""A worker's long poll lasts a minute."""
RECENT_LOOK = timedelta(seconds=20)
"""A worker looks every five seconds."""
RECENT_SIGN = timedelta(minutes=2)
"""A machine under load may hold a worker up for a while."""


def main() -> int:
    """Read what the worker has written, and say what it is."""
    file = Path(os.environ["SEPTET_STATE_DIR"]) / "health.json"
    now, asks_for_life = datetime.now(UTC), sys.argv[1:] == ["--alive"]
    try:
        signed = datetime.fromtimestamp(file.stat().st_mtime, UTC)
        seen = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        print(f"no worker has reached the server yet: {file} is missing")
        return 0 if asks_for_life else 1
    if asks_for_life:
        print(f"the worker gave its last sign of life at {signed}")
        return 0 if now - signed < RECENT_SIGN else 1
    looked, polled = (datetime.fromisoformat(seen[key]) for key in ("looked_at", "polled_at"))
    print(f"the worker asked the server at {looked}; the server saw its last poll at {polled}")
    return 0 if now - looked < RECENT_LOOK and now - polled < RECENT_POLL else 1


if __name__ == "__main__":
    sys.exit(main())
