"""`septet codec`: the keys that seal what Temporal keeps."""

from typing import Annotated

from clients.cli import options as given
from clients.cli.options import argument
from clients.cli.reply import CommandReply
from clients.cli.wrapping import echo
from septet.keys.key_ring import new_key_line

KeyId = Annotated[str, argument(metavar="ID", help="The key's id, such as its month: 2026-11.")]


async def new_key(key_id: KeyId, /, *, as_json: given.Json = False) -> CommandReply:
    """Print a new key as a line for the file that SEPTET_SEAL_KEYS_FILE names."""
    line = new_key_line(key_id)
    return CommandReply({"line": line}, lambda: echo(line))
