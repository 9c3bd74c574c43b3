"""Render the page's templates. All values are escaped: other people wrote the issues, plans and transcripts."""

import json
import re
from collections.abc import Mapping
from datetime import timedelta
from http import HTTPStatus
from importlib.resources import files
from typing import Final

from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader, StrictUndefined
from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup

from clients.page import changes, standing
from clients.patches import PatchLine, difference
from clients.pipelines.rows import OVER, counts_of
from clients.tool_calls import only_confirms, without_workspace
from septet.contracts.amounts import cost_text
from septet.contracts.decisions import Target, targets_of
from septet.contracts.host_files import LogEntry
from septet.contracts.names import Step
from septet.contracts.task import Task

HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
"""The headers of every response: the browser runs, shows and requests only this server's own files."""
STATIC: Final = {
    "page.css": "text/css",
    "page.js": "text/javascript",
    "idiomorph.min.js": "text/javascript",
    "septet.svg": "image/svg+xml",
}
CARDS_SHOWN: Final = 60
"""The most cards in one stage of the board; the page shows only the number of further cards."""
_HEADINGS: Final = {"h1": "h3", "h2": "h4", "h3": "h5", "h4": "h6", "h5": "h6"}
"""The tags that replace a plan's heading tags, because the page's own headings use the higher tags."""
_MINUTE_SECONDS: Final = 60
_LINK: Final = re.compile(r"https?://|mailto:", re.IGNORECASE)


class _Markdown(MarkdownIt):
    """A Markdown parser that makes links only to http, https and mail addresses."""

    def validateLink(self, url: str) -> bool:  # noqa: N802 -- the parser asks it by this name
        return _LINK.match(url) is not None


# Raw HTML and tables stay text: cells would multiply its length. Pictures are not fetched.
_MARKDOWN: Final = _Markdown("commonmark", {"html": False}).disable("image")


def render(template: str, status: HTTPStatus = HTTPStatus.OK, **values: object) -> HTMLResponse:
    """Return a response with a template's text, filled with `values`."""
    return HTMLResponse(text_of(template, **values), status)


def text_of(template: str, **values: object) -> str:
    """Return a template's text, filled with `values`."""
    return _ENVIRONMENT.get_template(template).render(**values)


def static_file(name: str) -> bytes:
    """Return one of the page's own files; `name` is one of `STATIC`."""
    return files("clients.page").joinpath("static", name).read_bytes()


def markdown_of(text: str) -> Markup:
    """Return the HTML of a Markdown text."""
    tokens: list[Token] = _MARKDOWN.parse(text)
    for token in tokens:
        token.tag = _HEADINGS.get(token.tag, token.tag)
    html = _MARKDOWN.renderer.render(tokens, _MARKDOWN.options, {})
    return Markup(html)  # noqa: S704 -- the renderer escapes what it is given


def _elapsed_time(seconds: float) -> str:
    """Return an elapsed time as text, to the second, in the same format as `page.js`."""
    return f"{seconds:.0f} s" if seconds < _MINUTE_SECONDS else str(timedelta(seconds=round(seconds)))


def _web_link(address: str | None) -> str | None:
    """Return an address if it is a web address; else `None`, such as for a path of the local forge."""
    return address if address is not None and address.startswith(("https://", "http://")) else None


def _steps_to_come(task: Task, running: str) -> list[str]:
    """Return the steps that a work order has not reached."""
    reached = {row.step for row in task.steps} | {running}
    return [] if task.is_closed else [step.value for step in Step if step.value not in reached]


def _moves_of(task: Task) -> list[Target]:
    """Return the stages to which a work order's page offers a move; other decisions have their own buttons."""
    others = {Target.CANCELLED} if not task.is_closed else {Target.EXECUTING}
    return [target for target in targets_of(task.status, task.stage) if target not in others]


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("clients.page"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    environment.filters.update(
        markdown=markdown_of,
        duration=lambda seconds: f"{seconds:.1f} s" if seconds < _MINUTE_SECONDS else _elapsed_time(seconds),
        elapsed=_elapsed_time,
        cost=cost_text,
        time=lambda stamp: stamp[:19].replace("T", " "),  # to the second, in UTC
        web_link=_web_link,
        end_of_link=lambda address: "/".join(address.rstrip("/").split("/")[-2:]),  # such as `pull/7`
        age=standing.age_of,
    )
    environment.globals.update(
        steps_to_come=_steps_to_come,
        counts_of=counts_of,
        all_steps=[step.value for step in Step],
        cards_shown=CARDS_SHOWN,
        pipelines_over=OVER,
        who="",
        needs_first=lambda tasks: sorted(tasks, key=lambda task: not standing.need_of(task)),
        moves_of=_moves_of,
        need_of=standing.need_of,
        news_of=standing.news_of,
        wait_of=standing.wait_of,
        targets=lambda task: targets_of(task.status, task.stage),
        is_local_pull=standing.is_local_pull,
        obstacle_of=standing.obstacle_of,
        number_of_step=standing.number_of_step,
        steps_done=standing.steps_done,
        review_of=changes.review_of,
        is_plan_file=changes.is_plan_file,
        folders_of=changes.folders_of,
        heading_of=heading_of,
        edit_of=edit_of,
        body_of=body_of,
        says_nothing_new=says_nothing_new,
        words_of=words_of,
    )
    return environment


_NAMES: Final = (
    "command", "file_path", "filePath", "path", "absolute_path", "pattern", "query", "url", "description",
)  # fmt: skip
"""The names of the arguments that describe a tool call, the best name first."""
_SHOWN: Final = 120


def heading_of(entry: LogEntry) -> str:
    """Return a one-line heading for a tool call."""
    call = _arguments(entry)
    words = next((str(call[name]) for name in _NAMES if call.get(name)), "") if call else entry.text
    line = without_workspace(" ".join(words.split()))
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN]}…"


def edit_of(entry: LogEntry) -> tuple[PatchLine, ...]:
    """Return a tool call's edit of a file as lines of a diff; an empty tuple for any other call."""
    call = _arguments(entry)
    before, after = call.get("old_string", call.get("oldString")), call.get("new_string", call.get("newString"))
    if before is None and after is None:
        after = call.get("content")
    if not isinstance(after, str):
        return ()
    return tuple(difference(before if isinstance(before, str) else "", after))


def body_of(entry: LogEntry) -> str:
    """Return the text below a tool call's heading: the arguments, one on each line if they can be parsed."""
    call = _arguments(entry)
    if not call:
        return entry.text
    if isinstance(command := call.get("command"), str):
        return f"$ {command}"
    return "\n".join(f"{name}: {_text(value)}" for name, value in call.items() if value not in ("", [], None))


def words_of(entry: LogEntry) -> str:
    """Return an agent's message; if the message is a JSON answer, each field begins a new line."""
    return body_of(entry) if entry.kind == "result" else entry.text


def says_nothing_new(entry: LogEntry) -> bool:
    """Return whether an entry only confirms a write, or is an answer that another entry repeats."""
    return entry.tool == "StructuredOutput" or only_confirms(entry)


def _arguments(entry: LogEntry) -> Mapping[str, object]:
    if entry.kind not in {"tool_call", "result"} or not entry.text.startswith("{"):
        return {}
    try:
        value = json.loads(entry.text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str:
    return "".join(f"\n- {part}" for part in value) if isinstance(value, list) else str(value)


_ENVIRONMENT: Final = _environment()
