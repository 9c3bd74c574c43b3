"""Who asked on a forge that an issue is worked on, and which of its texts stood there then."""

import hashlib
import json

from pydantic import Field

from septet.contracts.wire import InnerWire


class IssueRequest(InnerWire):
    """What a person who may push asked for, by a label or a comment."""

    by: str = Field(default="", max_length=200)
    """The account."""
    at: str = Field(default="", max_length=40)
    """When, ISO 8601."""
    text_sha256: str = Field(default="", max_length=64)
    """Of title and body as they stood then (`text_sha256`); empty where nobody knows."""
    waits_because: str = Field(default="", max_length=1000)
    """Why a person has to read the issue before work begins; empty where work may begin."""


def text_sha256(title: str, body: str | None) -> str:
    """Return what an issue's title and body are known by, whichever way a forge tells them."""
    lines = (body or "").replace("\r\n", "\n").replace("\r", "\n").rstrip()
    return hashlib.sha256(json.dumps([" ".join(title.split()), lines]).encode()).hexdigest()
