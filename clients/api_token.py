"""The HTTP API's token: the server makes it, and clients of the same user read it."""

import os
import secrets
from typing import Final

from septet.errors import MachineFailedError
from septet.settings import Settings
from septet.state import StateDir

_OFF: Final = "none"
_TOKEN_BYTES: Final = 32
_OWNER_ONLY: Final = 0o600


def api_token(settings: Settings) -> str | None:
    """Return the token that the API wants, made on first use; `None` where the setting switches it off.

    Raises:
        MachineFailedError: The file is there and holds no token.
    """
    said = settings.api_token.get_secret_value() if settings.api_token is not None else ""
    if said:
        return None if said == _OFF else said
    return _kept(StateDir(settings.state_dir))


def _kept(state: StateDir) -> str:
    """Return the state directory's token; of two processes that make it, the first one wins."""
    path = state.api_token
    if not path.exists():
        state.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        own = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
        file = os.open(own, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWNER_ONLY)
        with os.fdopen(file, "w", encoding="ascii") as writer:
            writer.write(secrets.token_urlsafe(_TOKEN_BYTES) + "\n")
        try:
            os.link(own, path)
        except FileExistsError:
            pass
        finally:
            own.unlink()
    token = path.read_text(encoding="utf-8").strip()
    if not token:
        raise MachineFailedError(f"{path} is empty.", remedy="Remove it: the next `septet serve` makes a new one.")
    return token
