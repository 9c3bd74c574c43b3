"""Show a page of the documentation on a terminal."""

from typing import ClassVar, Final

from rich.console import Console, ConsoleOptions, RenderResult
from rich.constrain import Constrain
from rich.markdown import CodeBlock, Markdown, MarkdownElement
from rich.text import Text

from clients.cli.terminal.console import show_paged

_WIDEST: Final = 100
"""The most columns of a readable line."""


class _Code(CodeBlock):
    """A block of code, whose lines never break."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the lines of the code, indented."""
        lines = str(self.text).rstrip().split("\n")
        yield Text("\n".join(f"    {line}" for line in lines), style="cyan", no_wrap=True, overflow="ignore")


class Document(Markdown):
    """A page of the documentation as rich renders it, but with lines of code that never break."""

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements, "fence": _Code, "code_block": _Code
    }  # fmt: skip


def show_document(text: str) -> None:
    """Show a Markdown text through the person's pager."""
    show_paged([Constrain(Document(text, hyperlinks=False), _WIDEST)])
