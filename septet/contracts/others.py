"""What a work order that comes after others asks about them."""

from typing import Literal

from septet.contracts.wire import Wire

Until = Literal["merged", "completed", "closed"]


class OthersLook(Wire):
    """Ask whether other work orders are over."""

    id: str
    """The one that waits."""
    after: tuple[str, ...]
    until: Until
