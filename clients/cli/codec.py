"""`septet codec`: the keys that seal what Temporal keeps."""

from typing import Annotated

import typer

from clients.cli import options as given
from clients.cli.grouped_help import command_group
from clients.cli.reply import CommandReply, reply

app = command_group("codec", "Make keys that encrypt what Temporal keeps.")
KeyId = Annotated[str, typer.Argument(metavar="ID", help="The key's id, such as its month: 2026-11.")]


@app.command("new-key")
def new_key(key_id: KeyId, as_json: given.Json = False) -> None:
    """Print a new key as a line for the file that SEPTET_SEAL_KEYS_FILE names.

    Example: septet codec new-key 2026-11 >> seal-keys
    """

    async def work() -> CommandReply:
        from septet.key_ring import new_key_line

        line = new_key_line(key_id)
        return CommandReply({"line": line}, lambda: typer.echo(line))

    reply(work, as_json=as_json)
