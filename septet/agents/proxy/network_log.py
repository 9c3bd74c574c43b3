"""Log a guest's network requests in the file `network.jsonl` of its run.

A permitted request has a line at its beginning, and another line with the same `id` at its end. When no more lines
fit, no request is permitted. Each of the first refused or unanswered requests has a line. Later ones are only
counted for each network host, so that permitted requests still fit.
"""

import json
import os
import threading
import time

from septet.agents.processes.process_tree import utc_text

NETWORK_LOG = "network.jsonl"
REFUSED_BYTES = 1 << 18
"""The most bytes of lines about refusals and hosts that did not answer; further refusals are only counted."""
MOST_BYTES = 1 << 24
"""The size of a log, in bytes, at which no further request is permitted."""
MOST_COUNTED = 200
"""The number of network hosts whose refusals are counted by name; refusals of more hosts are counted together."""
LONGEST_TEXT = 300
OTHERS, MANY, MANY_REQUESTS = "other hosts", "refused again and again", "more requests"
IS_FULL = "the log of its run's network is full"


class AskedHost:
    """A network host that a guest requested, and the reason of a refusal."""

    def __init__(self, name: str, port: int, refusal: str = "", request: str = "") -> None:
        """Take a request and note its time; `refusal` is the reason in words, empty for a permitted request."""
        self.name = name
        self.port = port
        self.refusal = refusal
        self.request = request
        """Method and path of a request to a model."""
        self.id = ""
        """The id of the request's lines; empty before the first line."""
        self.began_at = time.time()
        self.clock = time.monotonic()

    def fields(self) -> dict[str, object]:
        """Return the fields of this request's line in the log."""
        about = {"id": self.id, "request": self.request[:LONGEST_TEXT], "why": self.refusal[:LONGEST_TEXT]}
        return {
            "time": utc_text(self.began_at),
            "host": self.name[:LONGEST_TEXT],
            "port": self.port,
            "allowed": not self.refusal,
            **{name: value for name, value in about.items() if value},
        }


class NetworkLog:
    """The log file of the current turn; many threads write to the log."""

    def __init__(self, descriptor: int) -> None:
        """Take the descriptor of the log file; the log closes the descriptor."""
        self.guard = threading.Lock()
        self.number = 0
        self.open(descriptor)

    def open(self, descriptor: int) -> None:
        """Continue the log in this file, which an earlier proxy may have begun."""
        self.descriptor = descriptor
        self.written_bytes = os.fstat(descriptor).st_size
        self.refused_bytes = 0
        self.counts: dict[tuple[str, int, str, str], int] = {}

    def change(self, descriptor: int) -> None:
        """Write the counts, close the file, and continue the log in the file of the next turn."""
        self.flush()
        with self.guard:
            os.close(self.descriptor)
            self.open(descriptor)

    def begin(self, host: AskedHost) -> bool:
        """Log that a request is permitted; return false if the log is full."""
        with self.guard:
            if self.written_bytes > MOST_BYTES:
                return False
            self.number += 1
            host.id = f"{os.getpid()}-{self.number}"
            self.write(host.fields())
        return True

    def note(
        self, host: AskedHost, *, sent_bytes: int = 0, received_bytes: int = 0, tokens: tuple[int, int] = (0, 0)
    ) -> None:
        """Log a refusal, or the bytes and tokens of a request at its end."""
        with self.guard:
            if not host.id and self.refused_bytes > REFUSED_BYTES:
                self.count(host)
                return
            about = {"sent_bytes": sent_bytes, "received_bytes": received_bytes}
            seconds = round(time.monotonic() - host.clock, 3)
            used = dict(zip(("input_tokens", "output_tokens"), tokens, strict=True)) if any(tokens) else {}
            written = self.write({**host.fields(), **about, "seconds": seconds, **used})
            self.refused_bytes += 0 if host.id else written

    def count(self, host: AskedHost) -> None:
        """Count a request that gets no separate line; log the count when it is 1, 2, 4, 8 and so on."""
        about = (MANY if host.refusal else "", MANY_REQUESTS if host.request else "")
        key = (host.name[:LONGEST_TEXT], host.port, *about)
        if key not in self.counts and len(self.counts) >= MOST_COUNTED:
            key = (OTHERS, 0, *about)
        count = self.counts[key] = self.counts.get(key, 0) + 1
        if count & (count - 1) == 0:
            self.write_count(key)

    def write_count(self, key: tuple[str, int, str, str]) -> None:
        """Log how many refused or unanswered requests to a network host have no separate line."""
        host = AskedHost(*key)
        host.id = f"{os.getpid()} {' '.join(map(str, key))}"
        self.write({**host.fields(), "count": self.counts[key]})

    def flush(self) -> None:
        """Log all counts of requests that have no separate line."""
        with self.guard:
            for key in self.counts:
                self.write_count(key)

    def write(self, fields: dict[str, object]) -> int:
        """Write a line to the file, and return its length in bytes; the caller holds `guard`."""
        line = f"{json.dumps(fields)}\n".encode()
        try:
            os.write(self.descriptor, line)
        except OSError:  # a full disk must not stop the guest's work
            return len(line)
        self.written_bytes += len(line)
        return len(line)


def open_log(folder: str = ".") -> int:
    """Open the log of the run in `folder`, or create the log; return its descriptor."""
    return os.open(f"{folder}/{NETWORK_LOG}", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
