"""Print costs for people."""

from rich.table import Table
from rich.text import Text

from clients.cli.render.ages import span_of
from clients.cli.terminal.console import console
from septet.contracts.amounts import Spending, usd_text
from septet.contracts.replies import CostsReply
from septet.system.preview import printable
from septet.system.text import count_noun


def show_costs(reply: CostsReply) -> None:
    """Print the use of each group on a line, and the sum."""
    out = console()
    if not reply.costs:
        out.print("Nothing has been counted yet: that takes up to five minutes, or a completed work order.")
        return
    table = Table(box=None, pad_edge=False, header_style="dim")
    for heading in (reply.by, "USD", "tokens", "time", "agent runs"):
        table.add_column(heading, justify="left" if heading == reply.by else "right", overflow="fold")
    unnamed = "the workers' own" if reply.by == "login" else "not named"
    for group in reply.costs:
        table.add_row(printable(group.name) or unnamed, *_cells(group.use))
    if len(reply.costs) > 1:
        table.add_row(Text("total", style="bold"), *_cells(reply.total))
    out.print(table)
    if reply.scripted:
        out.print(Text("Tokens and dollars of the agent `scripted` are made up.", style="dim"), soft_wrap=True)
    if reply.total.unpriced:
        runs = count_noun(reply.total.unpriced, "agent run")
        out.print(f"{runs} reported no cost; such runs count as 0 USD.", soft_wrap=True)


def _cells(use: Spending) -> tuple[str, ...]:
    return usd_text(use.usd), f"{use.tokens:,}", span_of(use.seconds), str(use.turns)
