"""Read a typed answer from any text, for callers with contracts of their own."""

from typing import TypeVar

from pydantic import TypeAdapter

from septet.answers.ladder import Answer, read_answer
from septet.answers.yaml_values import yaml_values_in

T = TypeVar("T")


def read_typed_answer(contract: type[T] | TypeAdapter[T], text: str) -> Answer[T]:
    """Read the object or array that meets the contract: JSON from anywhere in the text, or YAML from a fence.

    A key that the contract does not name is refused whatever the contract's own setting, and so is a value of
    another type. Raises `AnswerError`.
    """
    return read_answer(contract, text, also=yaml_values_in(text))
