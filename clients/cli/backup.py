"""`septet backup`: a copy of this host's state directory, taken while everything runs."""

from pathlib import Path
from typing import Annotated, Final

from clients.cli import options as given
from clients.cli.options import argument
from clients.cli.reply import CommandReply
from clients.cli.wrapping import say
from septet.backup import Backup, back_up
from septet.settings import load_settings
from septet.state import StateDir
from septet.system.text import count_noun, name_some

_SHOWN: Final = 5


async def backup(
    folder: Annotated[Path, argument(metavar="DIR", help="A new folder.")], /, *, as_json: given.Json = False
) -> CommandReply:
    """Copy this host's state directory, with the embedded server's database, while it runs."""
    copy = back_up(StateDir(load_settings().state_dir), folder.expanduser().absolute())
    row = {
        "folder": str(copy.folder),
        "database": copy.has_database,
        "work_orders": copy.places,
        "changing": copy.changing,
        "left_out": copy.left_out,
        "size_bytes": copy.size_bytes,
    }
    return CommandReply({"backup": row}, lambda: _show(copy))


def _show(copy: Backup) -> None:
    database = "the server's database and " if copy.has_database else ""
    size = f"{copy.size_bytes / 1_000_000:,.1f} MB"
    say(f"Backed up {database}this host to {copy.folder}: {count_noun(len(copy.places), 'work order')}, {size}.")
    for title, names in (("Changed during the backup", copy.changing), ("Not readable, left out", copy.left_out)):
        if names:
            say(f"{title}: {name_some(names, _SHOWN)}.")
