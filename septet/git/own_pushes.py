"""What a work order itself has pushed: that it may replace, after a person sent it back to an earlier step."""

import json
from typing import Final

from septet.git.place import Place
from septet.system.durable import write_durably

_FILE: Final = "pushed.json"


def note_push(place: Place, branch: str, sha: str) -> None:
    """Write down, on disk, that `sha` is about to be pushed to `branch`."""
    pushes = _read(place)
    if sha not in pushes.get(branch, []):
        pushes.setdefault(branch, []).append(sha)
        write_durably(place.records / _FILE, json.dumps(pushes).encode())


def is_own_push(place: Place, branch: str, sha: str) -> bool:
    """Say whether `sha` came to the origin's `branch` from this work order."""
    return sha in _read(place).get(branch, [])


def pushed_branches(place: Place) -> tuple[str, ...]:
    """Return the branches that this work order has pushed to, the first one first."""
    return tuple(_read(place))


def _read(place: Place) -> dict[str, list[str]]:
    try:
        pushes: dict[str, list[str]] = json.loads((place.records / _FILE).read_bytes())
    except FileNotFoundError:
        return {}
    return pushes
