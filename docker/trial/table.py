"""The table of what a trial saw, a line each."""


class NotSoError(Exception):
    """Something was not seen that should be."""


def expect(what: str, seen: object, *, holds: bool) -> None:
    """Note what was seen and go on when it is as it should be.

    Raises:
        NotSoError: It is not.
    """
    note(what, seen, mark="ok" if holds else "NOT SO")
    if not holds:
        raise NotSoError(f"not as it should be: {what}: {seen}")


def note(what: str, seen: object, mark: str = "") -> None:
    """Print one line of the table."""
    print(f"{mark:6} | {what:52} | {seen}", flush=True)
