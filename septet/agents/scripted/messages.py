"""What comes on stdin with `--input-format stream-json`: a message of the user's in each line."""

from __future__ import annotations

import json

from septet.agents.scripted.arguments import Refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def read_message(line: bytes) -> dict[str, Any] | None:
    """Return the message of a line; `None` for a blank one, and for what is no user's.

    Raises:
        Refusal: The line is no JSON object.
    """
    if not line.strip():
        return None
    try:
        message = json.loads(line)
    except ValueError as error:
        raise Refusal(f"Error parsing streaming input line: {error}") from error
    if not isinstance(message, dict):
        raise Refusal("Error: Expected message to be an object.")
    return message if message.get("type") == "user" else None


def text_of(message: dict[str, Any]) -> str:
    """Return what a message says: a text, or blocks with texts."""
    content = (message.get("message") or {}).get("content", "")
    if isinstance(content, str):
        return content
    return "\n".join(str(block.get("text", "")) for block in content)
