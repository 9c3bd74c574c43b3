"""The HTTP API's token, which the state directory keeps for the API and for clients of the same user."""

from typing import Final

from septet.errors import MachineFailedError
from septet.settings import Settings
from septet.state import StateDir

_OFF: Final = "none"


def api_token(settings: Settings) -> str | None:
    """Return the token that the API requires, made on first use; `None` if the setting switches the token off.

    Raises:
        MachineFailedError: The state directory's file exists and contains no token.
    """
    token = settings.api_token.get_secret_value() if settings.api_token is not None else ""
    if token:
        return None if token == _OFF else token
    state = StateDir(settings.state_dir)
    state.root.mkdir(mode=0o700, parents=True, exist_ok=True)
    token = state.api_token()
    if not token:
        remedy = "Remove it: the next `septet serve` makes a new one."
        raise MachineFailedError(f"{state.api_token_file} is empty.", remedy=remedy)
    return token
