"""A repository as a person names it, before a worker on another machine or in another folder reads it."""

from pathlib import Path

from pydantic import ValidationError

from septet.contracts.order import WorkOrderInput
from septet.errors import InvalidInputError
from septet.git.address import parse_address


def whole_path(repository: str) -> str:
    """Return a path as the worker will understand it; addresses stay as they are."""
    is_path = repository.startswith((".", "/", "~"))
    looks_like_address = "://" in repository or (":" in repository and not is_path)
    return repository if looks_like_address else str(Path(repository).expanduser().absolute())


def with_project(order: WorkOrderInput) -> WorkOrderInput:
    """Return a work order with the project that its repository stands for, so that it has one while it waits.

    One whose address is refused stays as it is: the worker that reads it says why.
    """
    if order.project is not None:
        return order
    try:
        project = parse_address(order.repository, home=Path.home()).project
        return WorkOrderInput.model_validate({**dict(order), "project": project})
    except (InvalidInputError, ValidationError):
        return order
