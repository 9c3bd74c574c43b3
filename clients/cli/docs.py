"""`septet docs`: the documentation of this release, which is installed with it."""

import sys
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, ClassVar, Final

from cyclopts.completion import CompletionContext
from rich.console import Console, ConsoleOptions, RenderResult
from rich.constrain import Constrain
from rich.markdown import CodeBlock, Markdown, MarkdownElement
from rich.text import Text

from clients.cli import options as given
from clients.cli.options import argument
from clients.cli.pager import show_paged
from clients.cli.reply import CommandReply
from clients.cli.wrapping import echo
from septet.errors import NotFoundError


class _Code(CodeBlock):
    """Lines of code as they are written: they are never broken."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the lines, indented."""
        lines = str(self.text).rstrip().split("\n")
        yield Text("\n".join(f"    {line}" for line in lines), style="cyan", no_wrap=True, overflow="ignore")


class Document(Markdown):
    """A page of the documentation."""

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements, "fence": _Code, "code_block": _Code
    }  # fmt: skip


_FOLDER: Final = Path(__file__).parents[2] / "septet" / "docs"
"""In a clone a link to `docs/`; a wheel has the pages themselves, without pictures and decisions."""
_WIDEST: Final = 100
"""Columns that are read with ease."""
_PLACES: Final = ("*.md", "operations/*.md")


def _pages() -> dict[str, Path]:
    """Return the pages by their names, such as `commands` or `operations/runbook`."""
    paths = [path for place in _PLACES for path in sorted(_FOLDER.glob(place))]
    return {path.relative_to(_FOLDER).with_suffix("").as_posix(): path for path in paths}


def _complete_page(context: CompletionContext) -> list[str]:
    return [name for name in _pages() if name.startswith(context.incomplete)]


async def docs(
    page: Annotated[
        str | None,
        argument(metavar="PAGE", help="A page, such as commands.", completer=_complete_page),
    ] = None,
    /,
    *,
    as_json: given.Json = False,
) -> CommandReply:
    """Show a page of the documentation, or list all pages."""
    return _list_pages() if page is None else _show_page(page)


def _list_pages() -> CommandReply:
    rows = [{"name": name, "title": _title(path.read_text(encoding="utf-8"))} for name, path in _pages().items()]
    width = max((len(row["name"]) for row in rows), default=0)
    lines = [f"{row['name']:{width}}  {row['title']}" for row in rows]
    return CommandReply({"pages": rows}, lambda: echo("\n".join(lines)))


def _show_page(name: str) -> CommandReply:

    path = _pages().get(name)
    if path is None:
        near = get_close_matches(name, _pages(), n=1, cutoff=0.75)
        did_you_mean = f"Did you mean {near[0]}? " if near else ""
        raise NotFoundError(f"There is no page {name}.", remedy=f"{did_you_mean}`septet docs` lists the pages.")
    text = path.read_text(encoding="utf-8")
    return CommandReply({"page": {"name": name, "title": _title(text), "text": text}}, lambda: _print(text))


def _print(text: str) -> None:
    """Print a page: through the person's pager on a terminal, and in a pipe as it is written."""
    if not sys.stdout.isatty():
        sys.stdout.write(text)
        return

    show_paged([Constrain(Document(text, hyperlinks=False), _WIDEST)])


def _title(text: str) -> str:
    """Return a page's first heading."""
    return next((line.removeprefix("# ") for line in text.splitlines() if line.startswith("# ")), "")
