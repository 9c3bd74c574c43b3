"""Commands for administrators: choose a build, back up a host, make a seal key, declare a host dead."""

from dataclasses import asdict
from typing import Final

from clients.cli.serve.options import BackupOptions, HostGoneOptions, NewKeyOptions, PromoteOptions
from clients.cli.terminal.output import echo, say
from clients.cli.terminal.reply import CommandReply
from clients.temporal.hosts import give_up
from septet.backup import back_up
from septet.keys.key_ring import new_key_line
from septet.settings import load_settings
from septet.state import StateDir
from septet.system.text import count_noun, name_some
from workers.builds.promotion import PromotionCall
from workers.builds.promotion import promote as promote_build
from workers.connection.connection import connect

_ALL: Final = 100


async def promote(options: PromoteOptions) -> CommandReply:
    """Choose the workers' build that gets the work orders of a shared server."""
    settings = load_settings()
    within = options.within
    call = PromotionCall(build=options.build, ramp=options.ramp, force=options.force, within_seconds=within)
    done = await promote_build(await connect(settings, address=options.server.address), settings, call)

    def show() -> None:
        share = f"{done.percentage:g} % of the work orders" if done.percentage < _ALL else "all work orders"
        say(f"Build {done.build or 'unversioned'} gets {share}; before it was {done.before or 'none'}.")
        if done.waiting:
            say(f"These wait until a build with their patches is promoted: {', '.join(done.waiting)}.")

    payload = {name: getattr(done, name) for name in ("build", "before", "percentage")}
    return CommandReply({**payload, "waiting": list(done.waiting)}, show)


async def backup(options: BackupOptions) -> CommandReply:
    """Copy this host's state directory, with the embedded server's database, while it runs."""
    copy = back_up(StateDir(load_settings().state_dir), options.folder.expanduser().absolute())
    row = {"folder": str(copy.folder), "database": copy.has_database, "work_orders": copy.places}
    row |= {"changing": copy.changing, "left_out": copy.left_out, "size_bytes": copy.size_bytes}

    def show() -> None:
        database = "the server's database and " if copy.has_database else ""
        count, size = count_noun(len(copy.places), "work order"), f"{copy.size_bytes / 1_000_000:,.1f} MB"
        say(f"Backed up {database}this host to {copy.folder}: {count}, {size}.")
        lists = (("Changed during the backup", copy.changing), ("Not readable, left out", copy.left_out))
        for title, names in lists:
            if names:
                say(f"{title}: {name_some(names, _NAMED)}.")

    return CommandReply({"backup": row}, show)


async def new_key(options: NewKeyOptions) -> CommandReply:
    """Print a new key as a line for the file that SEPTET_SEAL_KEYS_FILE names."""
    line = new_key_line(options.key_id)
    return CommandReply({"line": line}, lambda: echo(line))


_NAMED: Final = 5


async def host_gone(options: HostGoneOptions) -> CommandReply:
    """Declare a host dead, so that its work orders and pipelines continue elsewhere."""
    told = await give_up(await connect(load_settings(), address=options.server.address), options.host)
    orders, pipelines = told.work_orders, told.pipelines
    names = [*orders, *(f"pipeline {each}" for each in pipelines)]
    show = f"septet show {orders[0]}" if orders else f"septet pipeline show {pipelines[0]}"
    text = (
        f"Host {options.host} is marked as gone for {', '.join(names)}.\n"
        f"With a checkpoint remote they continue on another host; without one they wait for this one: {show}"
    )
    if told.unanswered:
        text += f"\nNo worker answered for {name_some(told.unanswered, _NAMED)}: repeat the command later."
    return CommandReply({"host": options.host, **asdict(told)}, lambda: say(text))
