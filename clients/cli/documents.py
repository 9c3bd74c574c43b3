"""Markdown on a terminal: as wide as it is, with commands that can be copied."""

from typing import ClassVar

from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import CodeBlock, Markdown, MarkdownElement
from rich.text import Text


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
