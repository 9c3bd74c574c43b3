"""claude's command line, as far as a headless run needs it. Anything else is refused as claude does."""

from __future__ import annotations

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FLAGS = frozenset(
    {
        "--print", "--verbose", "--version", "--dangerously-skip-permissions", "--strict-mcp-config",
        "--fork-session", "--include-partial-messages", "--replay-user-messages", "--no-session-persistence",
        "--bare",
    }
)  # fmt: skip
VALUED = frozenset(
    {
        "--input-format", "--output-format", "--session-id", "--resume", "--json-schema", "--model",
        "--fallback-model", "--max-turns", "--max-budget-usd", "--permission-mode", "--append-system-prompt",
        "--system-prompt",
        "--settings", "--setting-sources", "--effort", "--scenario",
    }
)  # fmt: skip
VARIADIC = frozenset({"--tools", "--allowedTools", "--disallowedTools", "--add-dir", "--mcp-config"})
SHORT = {"-p": "--print", "-r": "--resume", "-v": "--version"}
FORMATS = ("text", "json", "stream-json")
INPUT_FORMATS = ("text", "stream-json")
_UUID_LENGTHS = [8, 4, 4, 4, 12]


class Refusal(Exception):  # noqa: N818 -- what claude says on stderr before it ends with 1
    """The command line cannot be followed."""


class Arguments:
    """What the command line says."""

    def __init__(
        self, flags: frozenset[str], values: dict[str, str], lists: dict[str, list[str]], prompt: str
    ) -> None:
        """Read and check the values.

        Raises:
            Refusal: One of them is not valid.
        """
        self.version = "--version" in flags
        self.prompt = prompt
        self.output_format = values.get("--output-format", "text")
        self.input_format = values.get("--input-format", "text")
        self.replays = "--replay-user-messages" in flags
        self.verbose = "--verbose" in flags
        self.fork = "--fork-session" in flags
        self.session_id = values.get("--session-id")
        self.resume = values.get("--resume")
        self.model = values.get("--model")
        self.scenario = values.get("--scenario")
        self.permission_mode = values.get("--permission-mode", "default")
        if "--dangerously-skip-permissions" in flags:
            self.permission_mode = "bypassPermissions"
        self.schema = _schema(values.get("--json-schema"))
        self.max_turns = _number(values.get("--max-turns"))
        self.max_budget_usd = _amount(values.get("--max-budget-usd"))
        self.without_tools = [tool for tool in lists.get("--tools", ["default"]) if tool] == []
        self._check()

    def _check(self) -> None:
        if self.output_format not in FORMATS:
            raise Refusal(f"error: option '--output-format <format>' argument '{self.output_format}' is invalid.")
        if self.output_format == "stream-json" and not self.verbose:
            raise Refusal("Error: When using --print, --output-format=stream-json requires --verbose")
        if self.input_format not in INPUT_FORMATS:
            raise Refusal(f"error: option '--input-format <format>' argument '{self.input_format}' is invalid.")
        streams = (self.input_format, self.output_format) == ("stream-json", "stream-json")
        if self.input_format == "stream-json" and not streams:
            raise Refusal("Error: --input-format=stream-json requires output-format=stream-json.")
        if self.replays and not streams:
            raise Refusal(
                "Error: --replay-user-messages requires both --input-format=stream-json and --output-format."
            )
        if self.session_id is not None and not is_uuid(self.session_id):
            raise Refusal("Error: Invalid session ID. Must be a valid UUID.")


def parse(argv: list[str]) -> Arguments:
    """Read a command line without its program.

    Raises:
        Refusal: A flag is unknown, lacks its value or has a wrong one.
    """
    flags: set[str] = set()
    values: dict[str, str] = {}
    lists: dict[str, list[str]] = {}
    prompt: list[str] = []
    rest = list(argv)
    while rest:
        word = rest.pop(0)
        if word == "--":
            prompt += rest
            break
        if not word.startswith("-") or word == "-":
            prompt.append(word)
            continue
        name, inline, value = word.partition("=")
        name = SHORT.get(name, name)
        if name in FLAGS and not inline:
            flags.add(name)
        elif name in VALUED:
            values[name] = value if inline else _next(rest, name)
        elif name in VARIADIC:
            lists[name] = [value] if inline else _all_values(rest)
        else:
            raise Refusal(f"error: unknown option '{word}'")
    return Arguments(frozenset(flags), values, lists, " ".join(prompt))


def is_uuid(text: str) -> bool:
    """Return whether `text` is a UUID in its usual form."""
    parts = text.split("-")
    return [len(part) for part in parts] == _UUID_LENGTHS and all(_is_hex(part) for part in parts)


def _is_hex(text: str) -> bool:
    return all(character in "0123456789abcdefABCDEF" for character in text)


def _next(rest: list[str], name: str) -> str:
    if not rest:
        raise Refusal(f"error: option '{name} <value>' argument missing")
    return rest.pop(0)


def _all_values(rest: list[str]) -> list[str]:
    values = []
    while rest and not rest[0].startswith("-"):
        values.append(rest.pop(0))
    return values


def _schema(text: str | None) -> dict[str, Any] | None:
    if text is None:
        return None
    try:
        schema = json.loads(text)
    except ValueError as error:
        raise Refusal(f"Error: --json-schema is not valid JSON: {error}") from error
    if not isinstance(schema, dict) or not isinstance(schema.get("type", "object"), str):
        raise Refusal(
            "Error: --json-schema is not a valid JSON Schema: data/type must be equal to one of the values"
        )
    return schema


def _amount(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        amount = float(text)
    except ValueError as error:
        raise Refusal(f"error: option '--max-budget-usd <amount>' argument '{text}' is invalid.") from error
    return amount


def _number(text: str | None) -> int | None:
    if text is None:
        return None
    if not text.isdecimal() or int(text) < 1:
        raise Refusal(f"error: option '--max-turns <turns>' argument '{text}' is invalid.")
    return int(text)
