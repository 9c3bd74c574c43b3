import pytest

from septet import errors
from septet.errors import SeptetError, ServerNotReachedError

KINDS = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, SeptetError)]


@pytest.mark.parametrize("kind", KINDS)
def test_an_errors_docstring_is_its_default_message(kind: type[SeptetError]) -> None:
    """An error without a message has the docstring of its class as its message."""
    assert kind().message == (kind.__doc__ or "").strip() != ""


def test_an_error_is_its_message_and_its_remedy() -> None:
    """The text of an error is its message and its remedy."""
    assert str(SeptetError("The disk is full.", remedy="Make room.")) == "The disk is full. Make room."
    assert str(SeptetError("The disk is full.")) == "The disk is full."
    assert "septet up" in str(ServerNotReachedError())
