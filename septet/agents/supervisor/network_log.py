"""What a guest asked of the network: a line for each connection, in the file `network.jsonl` of its run."""

import json
import os
import threading
import time

from septet.agents.supervisor.exit_file import utc_text

NETWORK_LOG = "network.jsonl"
MOST_BYTES = 1 << 20
"""After that nothing is written but that there was more."""
LONGEST_TEXT = 300


class AskedHost:
    """What a guest asked for, and why it was refused."""

    def __init__(self, name: str, port: int, refusal: str = "") -> None:
        """Begin now; a refusal is the reason in words, and empty for what is let through."""
        self.name = name
        self.port = port
        self.refusal = refusal
        self.began_at = time.time()
        self.clock = time.monotonic()


class NetworkLog:
    """The file of the turn that is under way; many threads write."""

    def __init__(self, descriptor: int) -> None:
        """Write to this descriptor, which is this object's own now."""
        self.guard = threading.Lock()
        self.descriptor = descriptor
        self.written_bytes = 0

    def change(self, descriptor: int) -> None:
        """Go on in the file of another turn."""
        with self.guard:
            os.close(self.descriptor)
            self.descriptor, self.written_bytes = descriptor, 0

    def note(self, host: AskedHost, *, sent_bytes: int = 0, received_bytes: int = 0) -> None:
        """Write a line: who was asked for, when, whether it was let through, and how many bytes went which way."""
        line = json.dumps(
            {
                "time": utc_text(host.began_at),
                "host": host.name[:LONGEST_TEXT],
                "port": host.port,
                "allowed": not host.refusal,
                "why": host.refusal[:LONGEST_TEXT],
                "sent_bytes": sent_bytes,
                "received_bytes": received_bytes,
                "seconds": round(time.monotonic() - host.clock, 3),
            }
        )
        with self.guard:
            if self.written_bytes > MOST_BYTES:
                return
            self.written_bytes += len(line) + 1
            text = line if self.written_bytes <= MOST_BYTES else json.dumps({"more": True})
            try:
                os.write(self.descriptor, f"{text}\n".encode())
            except OSError:  # a full disk takes nothing, and keeps nobody from working
                return


def open_log(folder: str = ".") -> int:
    """Return the descriptor of a run's log, which is made.

    Raises:
        OSError: The disk refused.
    """
    return os.open(f"{folder}/{NETWORK_LOG}", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
