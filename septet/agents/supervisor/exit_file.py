"""The record that a supervisor leaves: JSON without `json`, which alone would double the supervisor's start.

Part of the supervisor's program: it imports only small modules of the standard library.
"""

import os
import time


def as_json(facts: dict[str, str | float | None]) -> bytes:
    """Return one JSON object; `json` itself would double the start."""
    return ("{" + ", ".join(f'"{key}": {json_value(value)}' for key, value in facts.items()) + "}").encode()


def json_value(value: str | float | None) -> str:
    """Return a value as JSON; a character that would need an escape becomes a blank."""
    if isinstance(value, str):
        return '"' + "".join(letter if letter >= " " and letter not in '"\\' else " " for letter in value) + '"'
    return "null" if value is None else str(value)


def moment(seconds: float) -> str:
    """Return ISO 8601 in UTC, to the millisecond."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{int(seconds % 1 * 1000):03d}Z"


def leave(name: str, record: bytes, outputs: list[int]) -> None:
    """Put a record on disk, after the outputs that it speaks of. A full disk takes nothing but the record."""
    try:
        for output in outputs:
            os.fsync(output)
        file = os.open(f"{name}.new", os.O_WRONLY | os.O_CREAT, 0o600)
        os.write(file, record)
        os.fsync(file)
        os.rename(f"{name}.new", name)  # noqa: PTH104 -- pathlib takes long to import
        folder = os.open(".", os.O_RDONLY)
        os.fsync(folder)
        os.unlink("control.sock")  # noqa: PTH108 -- pathlib takes long to import
    except OSError:
        return
