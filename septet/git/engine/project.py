"""Find the project of a work order that names no project, before the repository is opened."""

from pathlib import Path
from typing import Final

from pydantic import ValidationError

from septet.contracts.order import WorkOrderInput
from septet.errors import InvalidInputError
from septet.git.engine.address import parse_address

_SOME_HOME: Final = Path("/")
"""Any home works: a folder's name is the same in every home."""


def with_project(order: WorkOrderInput) -> WorkOrderInput:
    """Return a work order with the project of its repository, so that a waiting work order has a project.

    A work order with a refused address stays unchanged: the worker that reads the address reports the error.
    """
    if order.project is not None:
        return order
    try:
        project = parse_address(order.repository, home=_SOME_HOME).project
        return WorkOrderInput.model_validate({**dict(order), "project": project})
    except (InvalidInputError, ValidationError):
        return order
