"""An answer as the protocol's result of a tool."""

import json

from mcp.types import CallToolResult, TextContent

from septet.contracts.replies import ErrorReply, Reply
from septet.system.masking import mask_json


def tool_result(reply: Reply | ErrorReply) -> CallToolResult:
    """Return an answer as an object, and as text for clients that know no objects; keys are masked."""
    structured = json.loads(mask_json(reply.model_dump_json().encode()))
    text = TextContent(text=json.dumps(structured, ensure_ascii=False))
    return CallToolResult(content=[text], structured_content=structured, is_error=not reply.ok)
