"""Turn an error into the reply that the CLI, the HTTP API and the MCP server share."""

from typing import TYPE_CHECKING, Final

from clients.executions.messages import server_refusal
from septet.contracts.replies import ErrorReply
from septet.contracts.task import TaskError
from septet.errors import SeptetError

if TYPE_CHECKING:
    from temporalio.service import RPCError

_MACHINE: Final = "Check that the path is right, that you may read and write it, and that the disk is not full."


def error_reply(error: "SeptetError | OSError | RPCError") -> ErrorReply:
    """Return the reply with an error's type, message and remedy; an `RPCError` becomes one of Septet's errors."""
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        message = f"{where}{error.strerror or error}."
        return ErrorReply(error=TaskError(type="MachineFailed", message=message, remedy=_MACHINE))
    if not isinstance(error, SeptetError):
        error = server_refusal(error)
    kind = type(error).__name__.removesuffix("Error")
    return ErrorReply(error=TaskError(type=kind, message=error.message, remedy=error.remedy))
