"""claude's dialect: its stream-json events, and the few that older wrappers print, as one outcome."""

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from septet.agents import api_errors, endings
from septet.agents.endings import Ending
from septet.agents.outcome import ExitRecord, Outcome, Seen
from septet.agents.stream import EventReader
from septet.contracts.facts import Usage

_NOTHING: Final = msgspec.Raw()


class _Event(msgspec.Struct, gc=False):
    """The fields of any event that matter; the rest of the line is skipped."""

    type: Any = None
    subtype: Any = None
    session_id: Any = None
    parent_tool_use_id: Any = None
    model: Any = None
    message: msgspec.Raw = _NOTHING
    # of a result
    is_error: Any = None
    result: msgspec.Raw = _NOTHING
    structured_output: msgspec.Raw = _NOTHING
    errors: msgspec.Raw = _NOTHING
    usage: msgspec.Raw = _NOTHING
    num_turns: Any = None
    total_cost_usd: Any = None
    model_usage_since_last_result: msgspec.Raw = _NOTHING
    permission_denials: msgspec.Raw = _NOTHING
    api_error_status: Any = None
    terminal_reason: Any = None
    # of system events and others
    tool_name: Any = None
    mcp_servers: msgspec.Raw = _NOTHING
    content: Any = None
    rate_limit_info: msgspec.Raw = _NOTHING


class _Message(msgspec.Struct, gc=False):
    id: Any = None
    model: Any = None
    usage: msgspec.Raw = _NOTHING
    content: msgspec.Raw = _NOTHING


class _Block(msgspec.Struct, gc=False):
    type: Any = None


class _Tokens(msgspec.Struct, gc=False):
    input_tokens: Any = 0
    output_tokens: Any = 0
    cache_read_input_tokens: Any = 0
    cache_creation_input_tokens: Any = 0
