"""What every face says of what went wrong."""

from typing import Final

from septet.contracts.replies import ErrorReply
from septet.contracts.task import TaskError
from septet.errors import SeptetError

_MACHINE: Final = "See that the path is right, may be read and written by you, and that the disk has room."


def told(error: SeptetError | OSError) -> ErrorReply:
    """Return an error's type, message and remedy."""
    if isinstance(error, SeptetError):
        kind = type(error).__name__.removesuffix("Error")
        return ErrorReply(error=TaskError(type=kind, message=error.message, remedy=error.remedy))
    where = f"{error.filename}: " if error.filename else ""
    message = f"{where}{error.strerror or error}."
    return ErrorReply(error=TaskError(type="MachineFailed", message=message, remedy=_MACHINE))
