"""Print the network requests of agents and checks by run, with a line for each connection."""

from collections.abc import Sequence
from datetime import datetime
from itertools import groupby
from typing import Final

from rich.text import Text

from clients.cli.terminal.console import console
from septet.contracts.replies import NetworkReply
from septet.contracts.views import NetworkRequest
from septet.system.preview import printable

_MOST_NAMED: Final = 5


def show_refusals(order_id: str, hosts: Sequence[str]) -> None:
    """Print a line with the refused hosts, if any, and the command that shows all requests."""
    if not hosts:
        return
    others = len(hosts) - _MOST_NAMED
    names = ", ".join(hosts[:_MOST_NAMED]) + (f" and {others} more" if others > 0 else "")
    line = Text(printable(f"refused hosts {names}  (septet logs {order_id} --network)"), style="yellow")
    console().print(line, soft_wrap=True)


def show_network(order_id: str, answer: NetworkReply) -> None:
    """Print all network requests."""
    out = console()
    if not answer.requests:
        out.print(Text(f"No sandbox of {order_id} on this host made a network request."), soft_wrap=True)
    for number, (run, requests) in enumerate(groupby(answer.requests, lambda each: each.run)):
        out.print(Text(f"{chr(10) if number else ''}{run}", style="bold"), soft_wrap=True)
        for each in requests:
            out.print(Text(printable(f"  {_line(each)}"), style="" if each.allowed else "yellow"), soft_wrap=True)
    if answer.is_cut:
        out.print(Text("Refusals beyond the first lines of a log are counted."), soft_wrap=True)


def _line(request: NetworkRequest) -> str:
    verdict = "allowed" if request.allowed else "refused"
    host = f"{request.host}:{request.port}" if request.port else request.host
    asked = f"{host}  {request.request}" if request.request else host
    many = f"{request.count:,} times, " if request.count > 1 else ""
    told = (
        f"{request.sent_bytes:,} bytes sent, {request.received_bytes:,} received, {request.seconds:.1f} s"
        if request.allowed
        else request.why
    )
    return f"{_time(request.asked_at)}{verdict}  {asked}  {many}{told}{' (a check)' if request.of_check else ''}"


def _time(moment: str) -> str:
    try:
        return f"{datetime.fromisoformat(moment).astimezone():%H:%M:%S}  "
    except ValueError:
        return ""
