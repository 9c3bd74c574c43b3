"""`septet docs`: the documentation of this release, which is installed with Septet."""

import sys
from difflib import get_close_matches
from pathlib import Path
from typing import Final

from clients.cli.commands import load
from clients.cli.decide.options import DocsOptions
from clients.cli.terminal.output import echo
from clients.cli.terminal.reply import CommandReply
from septet.errors import NotFoundError

_FOLDER: Final = Path(__file__).parents[3] / "septet" / "docs"
"""The folder of the documentation: in a clone, a link to `docs/`; in a wheel, a copy of the pages without pictures
and design decisions."""


def pages() -> dict[str, Path]:
    """Return the paths of the documentation's pages by name, such as `commands` or `operations/runbook`."""
    paths = [path for place in ("*.md", "operations/*.md") for path in sorted(_FOLDER.glob(place))]
    return {path.relative_to(_FOLDER).with_suffix("").as_posix(): path for path in paths}


async def docs(options: DocsOptions) -> CommandReply:
    """Show a page of the documentation, or list all pages."""
    if options.page is not None:
        return _show_page(options.page)
    rows = [{"name": name, "title": _title(path.read_text(encoding="utf-8"))} for name, path in pages().items()]
    width = max((len(row["name"]) for row in rows), default=0)
    lines = [f"{row['name']:{width}}  {row['title']}" for row in rows]
    return CommandReply({"pages": rows}, lambda: echo("\n".join(lines)))


def _show_page(name: str) -> CommandReply:
    path = pages().get(name)
    if path is None:
        near = get_close_matches(name, pages(), n=1, cutoff=0.75)
        did_you_mean = f"Did you mean {near[0]}? " if near else ""
        raise NotFoundError(f"There is no page {name}.", remedy=f"{did_you_mean}`septet docs` lists the pages.")
    text = path.read_text(encoding="utf-8")

    def show() -> None:
        if sys.stdout.isatty():
            load("clients.cli.terminal.documents:show_document")(text)  # a pipe does not need the renderer
        else:
            sys.stdout.write(text)

    return CommandReply({"page": {"name": name, "title": _title(text), "text": text}}, show)


def _title(text: str) -> str:
    return next((line.removeprefix("# ") for line in text.splitlines() if line.startswith("# ")), "")
