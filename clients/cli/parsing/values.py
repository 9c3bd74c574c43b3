"""Convert the values of options and arguments by the same rules as the fields of Septet's inputs."""

from collections.abc import Sequence
from typing import Annotated, Any, get_args, get_origin

from cyclopts import Token
from pydantic import Field, TypeAdapter, ValidationError

from septet.contracts.wording import reason_of


def convert(kind: Any, tokens: Sequence[Token], least: float | None, most: float | None) -> Any:  # noqa: ANN401 -- any
    """Return the value of an option or argument; a number must be at least `least` and at most `most`.

    Raises:
        ValueError: The value is invalid, or a flag was given a value; the message is the reason.
    """
    if kind is bool:
        raise ValueError("is a flag, and takes no value")
    is_list = get_origin(kind) is list
    value: TypeAdapter[Any] = TypeAdapter(
        Annotated[get_args(kind)[0] if is_list else kind, Field(ge=least, le=most)]  # type: ignore[arg-type]
    )
    values = [token.value for token in tokens]
    try:
        return [value.validate_python(each) for each in values] if is_list else value.validate_python(values[-1])
    except ValidationError as error:
        raise ValueError(reason_of(error.errors(include_url=False)[0]).rstrip(".")) from error
