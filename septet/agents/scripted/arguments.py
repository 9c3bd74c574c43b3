"""Read claude's command line, with the options that Septet uses; refuse other options, as claude does."""

from __future__ import annotations

import json
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

FLAGS = frozenset({"-p", "--verbose", "--version", "--dangerously-skip-permissions", "--replay-user-messages"})
VALUED = frozenset(
    {
        "--input-format", "--output-format", "--session-id", "--resume", "--json-schema", "--model", "--max-turns",
        "--max-budget-usd", "--disallowedTools", "--tools",
    }
)  # fmt: skip
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


class RefusalError(Exception):
    """The command line or the scenario cannot be followed: the program says why on stderr, and ends with 1."""


class Arguments:
    """The options of the scripted agent's command line."""

    def __init__(self, flags: set[str], values: dict[str, str]) -> None:
        """Read and check the values of the options.

        Raises:
            RefusalError: A value is not valid.
        """
        self.version = "--version" in flags
        self.serves = values.get("--input-format") == "stream-json"
        """Whether the prompts come one after the other on stdin."""
        self.replays = "--replay-user-messages" in flags
        self.session_id = values.get("--session-id")
        self.resume = values.get("--resume")
        self.model = values.get("--model")
        self.permission_mode = "bypassPermissions" if "--dangerously-skip-permissions" in flags else "default"
        self.schema: dict[str, Any] | None = json.loads(values.get("--json-schema", "null"))
        self.max_turns = _number(values.get("--max-turns"))
        self.max_budget_usd = float(values["--max-budget-usd"]) if "--max-budget-usd" in values else None
        self.without_tools = values.get("--tools") == ""
        if self.session_id is not None and not is_uuid(self.session_id):
            raise RefusalError("Error: Invalid session ID. Must be a valid UUID.")


def parse(argv: list[str]) -> Arguments:
    """Return the options in a command line, which does not include the program's name.

    Raises:
        RefusalError: A flag is unknown, lacks its value or has a wrong value.
    """
    flags: set[str] = set()
    values: dict[str, str] = {}
    rest = iter(argv)
    for word in rest:
        name, inline, value = word.partition("=")
        if word in FLAGS:
            flags.add(word)
        elif name in VALUED:
            values[name] = value if inline else _next(rest, name)
        else:
            raise RefusalError(f"error: unknown option '{word}'")
    return Arguments(flags, values)


def is_uuid(text: str) -> bool:
    """Return whether `text` is a UUID in its usual form."""
    return bool(_UUID.fullmatch(text))


def _next(rest: Iterator[str], name: str) -> str:
    value = next(rest, None)
    if value is None:
        raise RefusalError(f"error: option '{name} <value>' argument missing")
    return value


def _number(text: str | None) -> int | None:
    if text is not None and (not text.isdecimal() or int(text) < 1):
        raise RefusalError(f"error: option '--max-turns <turns>' argument '{text}' is invalid.")
    return None if text is None else int(text)
