"""Inflated texts of strangers, and the readers of such texts in processes that serve others."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

from clients import tool_calls
from clients.cli.render.logs import call_lines, headline
from clients.page import rendering
from clients.page.changes import LANGUAGES, review_of
from clients.page.rendering import markdown_of
from septet.agents.clis.plain_settings import read_object
from septet.agents.clis.registry import ADAPTERS
from septet.agents.guest.network import hosts_in
from septet.agents.outcomes import api_errors, reset_times
from septet.agents.outcomes.outcome import ExitRecord
from septet.answers import reasoning
from septet.answers.steps import read_step_answer
from septet.contracts.host_files import LogEntry
from septet.contracts.names import Step
from septet.errors import SeptetError
from septet.forges.events.comment_commands import parse_command
from septet.forges.opening import without_links_to
from septet.git.engine.git_words import failure_of, remote_words, shown_words
from septet.git.worktree.view import file_changes, read_status
from septet.keys.scanner import may_hold_a_key, read_added_lines
from septet.pipelines.issues import depends_on_in
from septet.system import masking, text
from septet.system.text import find_invisible
from septet.trackers.words import parse_reply

Reader = Callable[[str], object]
RECORDINGS: Final = Path(__file__).parents[1] / "data" / "recordings"
_ENTRY_CHARACTERS: Final = 2000
"""The most characters of a text in a log."""
_PLAN: Final = "specs/plan.md"
_END: Final = ExitRecord(cause="exited", exit_code=1)

PUMPS: Final = tuple(
    (prefix, unit, suffix)
    for prefix, units in {
        "": (
            " ", "\t", "\n", " \n", "a", "a ", "a\n", "0", "_", ".", "-", "- ", "- a\n", "> ", "*", "*a_", "a**b_", "# a\n", "`",
            "` `` ", "```\n", "~~~\n", "[", "![", "[a](", "[]", "(", "{", "{}", '{"a":', "[1,", "<", "<a ", "<!--", "</", "</a",
            '"', '\\"', "'", "\\", "/", "/*", "/a", "/a/workspaces/", "://", "://a:", "://a:b", "$1", "${A}", "&amp;", "|", ",",
            ", ", "--", "eyJ", "eyJ-", "sk-", "-----BEGIN ", "+a\n", "@@ -1 +1 @@\n", "diff --git a b\n", "\x1b[", "\u202e",
            "a<think>", "<think>\n", "</think>", "<|channel|>", "<|channel>", "<answer>", "<|im_end|>\n", "</s> ",
            "error: ", "repository ", "permission to ", "close ",
            "depends on #1 ", "API Error: ", "try again in 1 s ", "1h ", "resets Aaa", "https://a", "[](", f"]({_PLAN}", "bearer ",
            "token=", "ERROR codex_core::tools: error=", "Attempt 1 failed ", "refs/a/", "unable to access '", "a: b\n", "é",
        ),
        "<answer>": (" ", "</answer> "),
        "a</s>": (" ", "\n"),
        "a": (" ", "\n", "<think>", "'\\", '"\\', "`\\", "*/", "--", "->", "(a", "\\\n"),
        '"': ("a", "\\", "\n", "'", '\\"'),
        "/*": ("*", "/", "a\n"),
        "1-": (" ", "- "),
        "<!--": ("-", "->", "--"),
        "`": ("`", "``", "\n", "` "),
        "[a]: b '": ("c", "c\n", "\\'"),
        "resets in ": ("1", "1h", " "),
        '{"type":"': ("a", '"},{"', "\\"),
        '{"message":{"content":[': ("[", '{"type":"text"},', '{"a":'),
        f"[a]({_PLAN}) ": ("[", "](", "[](", "https://", "https://a/"),
    }.items()
    for unit in units
    for suffix in ("!",)
)  # fmt: skip
"""The beginning, the repeated part and the end of a text."""


def pumped(pump: tuple[str, str, str], length: int) -> str:
    prefix, unit, suffix = pump
    return prefix + unit * (length // len(unit)) + suffix


def readers() -> Mapping[str, Reader]:
    languages = {id(language): name for name, language in LANGUAGES.items()}.values()
    found: dict[str, Reader] = {f"diff of {name}": partial(_review, name) for name in languages}
    for cli, adapter in ADAPTERS.items():
        found[f"stream of {cli}"] = partial(_outcome, adapter)
        found[f"log of {cli}"] = partial(_log, adapter)
    for step in (Step.CLASSIFY_ISSUE, Step.GENERATE_BRANCH, Step.CREATE_COMMIT, Step.CREATE_PULL_REQUEST):
        found[f"answer of {step.value}"] = partial(_answer, step, in_pipeline=False)
    return found | {
        "answer in a pipeline": partial(_answer, Step.BUILD_PLAN, in_pipeline=True),
        "patch": lambda words: review_of(words, None),
        "plan": markdown_of,
        "entry of a log": _entries,
        "edit in a log": _edit,
        "paths": tool_calls.without_workspace,
        "keys by their looks": masking.scrub,
        "keys by their values": masking.mask,
        "preview": masking.preview,
        "printable": masking.printable,
        "one line": text.one_line,
        "line of bytes": partial(text.cut_line, limit_bytes=1000),
        "controls": text.without_controls,
        "invisible characters": lambda words: list(find_invisible(words)),
        "cell": text.table_cell,
        "printed call": reasoning.ends_in_printed_call,
        "printed marks": reasoning.has_printed_marks,
        "reset": lambda words: reset_times.find_reset(words, 1.7e9),
        "api error": lambda words: api_errors.classify(None, words),
        "settings": lambda words: read_object(words.encode()),
        "hosts": lambda words: hosts_in([words]),
        "dependencies": lambda words: depends_on_in(words, ["1"]),
        "body": lambda words: without_links_to(_PLAN, words),
        "added lines": lambda words: list(read_added_lines(words.encode())),
        "line with a key": lambda words: may_hold_a_key(words.encode()),
        "status": lambda words: file_changes([("create", each.path) for each in _status(words)]),
        "git": lambda words: shown_words(words.encode()),
        "remote": lambda words: (failure_of("push", "/x", words.encode()), remote_words(words.encode())),
        "comment": lambda words: (parse_command(words), parse_command(f"/septet {words}")),
        "reply": lambda words: (parse_reply(words), parse_reply(f"approve {words}")),
    }


def recorded_lines(cli: str) -> Iterable[bytes]:
    """Return one line of each kind in a CLI's recordings."""
    kinds = {}
    for path in sorted((RECORDINGS / cli).glob("*.stdout")):
        for line in path.read_bytes().splitlines():
            with suppress(ValueError):
                kinds[_kind(json.loads(line))] = line
    return kinds.values()


def follow_stream(cli: str, stream: bytes) -> object:
    return _outcome(ADAPTERS[cli], stream.decode()), _log(ADAPTERS[cli], stream.decode())


def _kind(event: Any) -> str:
    if not isinstance(event, dict):
        return ""
    return f"{event.get('type')} {event.get('subtype')} {_kind(event.get('item') or event.get('part') or event.get('event'))}"


def _review(name: str, code: str) -> object:
    lines = "".join(
        f"+{code[at : at + 900]}\n".replace("\n", "\n+").removesuffix("+") for at in range(0, len(code), 900)
    )
    patch = f"diff --git a/x.{name} b/x.{name}\n--- /dev/null\n+++ b/x.{name}\n@@ -0,0 +1 @@\n{lines}"
    return review_of(patch, None)


def _outcome(adapter: Any, words: str) -> object:
    dialect = adapter.dialect()
    dialect.feed(words.encode())
    return dialect.outcome(_END, words)


def _log(adapter: Any, words: str) -> object:
    log = adapter.transcript()
    return [*log.feed(words.encode()), *log.finish()]


def _answer(step: Step, words: str, *, in_pipeline: bool) -> object:
    with suppress(SeptetError):
        return read_step_answer(step, words, in_pipeline=in_pipeline)
    return None


def _entry(kind: Any, words: str) -> LogEntry:
    return LogEntry(
        id="1", run="1", step="", agent="", kind=kind, text=words[:_ENTRY_CHARACTERS], tool="Edit", time=""
    )


def _entries(words: str) -> object:
    texts = (words, json.dumps({"command": words[: _ENTRY_CHARACTERS // 2]}))
    return [
        (
            rendering.heading_of(entry),
            rendering.body_of(entry),
            rendering.says_nothing_new(entry),
            headline(entry),
        )
        for kind in ("tool_call", "tool_result", "text", "result")
        for entry in (_entry(kind, each) for each in texts)
    ]


def _edit(words: str) -> object:
    half = _ENTRY_CHARACTERS // 5
    edit = json.dumps({"path": "a", "old_string": words[:half], "new_string": words[half : 2 * half] + "!"})
    return rendering.edit_of(_entry("tool_call", edit)), list(call_lines("Edit", edit))


def _status(words: str) -> Iterator[Any]:
    return read_status(b"".join(b"? " + line.encode() + b"\0" for line in words.split("\n")))
