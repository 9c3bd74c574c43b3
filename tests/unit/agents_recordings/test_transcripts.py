"""The readable transcripts of five real CLIs, in one form for every dialect."""

import json
from pathlib import Path
from typing import Final

import pytest
from fakes.agent_streams import CLIS, lines

from septet.agents.clis.command.adapter import CommandTranscript
from septet.agents.clis.registry import ADAPTERS, adapter_for
from septet.agents.outcomes.transcript import TranscriptEntry, familiar

RECORDINGS: Final = Path(__file__).parents[2] / "data" / "recordings"
EVERY: Final = [
    pytest.param(cli, path.stem, id=f"{cli}/{path.stem}")
    for cli in CLIS
    for path in sorted((RECORDINGS / cli).glob("*.stdout"))
]
EDITED: Final = {name: "edit_bypass" if name in {"claude", "codex"} else "edit" for name in CLIS}


def told(cli: str, case: str, *, chunk_bytes: int = 1 << 20) -> list[TranscriptEntry]:
    transcript = adapter_for(cli).transcript()
    printed = (RECORDINGS / cli / f"{case}.stdout").read_bytes()
    entries = []
    for start in range(0, len(printed), chunk_bytes):
        entries += transcript.feed(printed[start : start + chunk_bytes])
    return entries + transcript.finish()


@pytest.mark.parametrize("cli", CLIS)
def test_work_of_any_cli_reads_as_calls_results_and_a_final_text(cli: str) -> None:
    """Each tool call comes before its result, and the last entry is the answer."""
    entries = told(cli, EDITED[cli])
    kinds = [entry.kind for entry in entries]
    calls = [entry for entry in entries if entry.kind == "tool_call"]
    assert kinds.count("tool_call") == kinds.count("tool_result") >= 2
    assert kinds.index("tool_call") < kinds.index("tool_result")
    assert all(entry.tool for entry in entries if entry.kind in {"tool_call", "tool_result"})
    assert any("git" in call.text and "commit" in call.text for call in calls)
    assert entries[-1].kind == "result"
    assert [entry.text for entry in entries if entry.kind == "text"][-1] == entries[-1].text != ""


@pytest.mark.parametrize("cli", CLIS)
def test_work_of_any_cli_has_the_tools_that_claude_has(cli: str) -> None:
    """A write and a command have the same tool names and arguments for every CLI."""
    calls = [(entry.tool, json.loads(entry.text)) for entry in told(cli, EDITED[cli]) if entry.kind == "tool_call"]
    assert {tool for tool, _ in calls} == {"Write", "Bash"}
    written = next(call for tool, call in calls if tool == "Write")
    assert str(written.get("file_path", written.get("filePath"))).endswith("hello.txt")
    assert all(call["command"].startswith(("cd ", "git ")) for tool, call in calls if tool == "Bash")


def test_a_patch_reads_as_edits() -> None:
    """Each file of a patch is a call."""
    patch = "*** Begin Patch\n*** Update File: a.py\n@@\n same\n-old\n+new\n*** Delete File: b.py\n*** End Patch"
    assert list(familiar(TranscriptEntry("tool_call", patch, "apply_patch"))) == [
        TranscriptEntry(
            "tool_call", '{"file_path": "a.py", "old_string": "same\\nold", "new_string": "same\\nnew"}', "Edit"
        ),
        TranscriptEntry("tool_call", '{"file_path": "b.py"}', "Delete"),
    ]


@pytest.mark.parametrize("cli", CLIS)
def test_authentication_error_reads_as_an_error(cli: str) -> None:
    """The API's refusal is an error entry for every CLI, and no result follows."""
    entries = told(cli, "auth_error")
    assert any(entry.kind == "error" for entry in entries)
    assert not any(entry.kind == "result" for entry in entries)


@pytest.mark.parametrize(("cli", "case"), EVERY)
def test_cuts_change_nothing(cli: str, case: str) -> None:
    """A recording in odd pieces gives the same entries as in one piece, and no entry is empty."""
    whole = told(cli, case)
    assert told(cli, case, chunk_bytes=613) == whole
    assert all(entry.text or entry.tool for entry in whole)


def test_claude_words_of_the_user_are_not_the_models() -> None:
    """The CLI's own prompts to the model are left out, and a tool's result names its tool."""
    call = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "a"}]}
    events = [
        {"type": "assistant", "message": {"content": [call, {"type": "text", "text": "Done."}]}},
        {"type": "user", "message": {"content": [result, {"type": "text", "text": "nudge"}]}},
        {"type": "user", "message": "words"},
        {"type": "system", "subtype": "permission_denied", "tool_name": "Write"},
        {"type": "system", "subtype": "api_retry", "error": "overloaded", "error_status": 529},
        {"type": "result", "is_error": True, "subtype": "error_max_turns", "errors": ["too many"]},
    ]
    assert adapter_for("claude").transcript().feed(lines(events)) == [
        TranscriptEntry("tool_call", '{"command": "ls"}', "Bash"),
        TranscriptEntry("text", "Done."),
        TranscriptEntry("tool_result", "a", "Bash"),
        TranscriptEntry("error", "Denied: Write"),
        TranscriptEntry("error", "The model API: overloaded 529; the CLI asks it again."),
        TranscriptEntry("error", "too many"),
    ]


def test_codex_items_of_kinds_to_come_are_told_too() -> None:
    """An item without a start gives a call and a result; a failed command shows its output and exit code."""
    command = {"type": "command_execution", "command": "make", "aggregated_output": "no\n", "exit_code": 2}
    items: list[dict[str, object]] = [
        {"type": "web_search", "query": "q", "status": "completed"},
        command,
        {"type": "reasoning", "text": "hm"},
        {"type": "error", "message": "odd"},
    ]
    events = [{"type": "item.completed", "item": {"id": str(at), **each}} for at, each in enumerate(items)]
    assert adapter_for("codex").transcript().feed(lines([*events, {"type": "turn.failed"}])) == [
        TranscriptEntry("tool_call", '{"query": "q"}', "WebSearch"),
        TranscriptEntry("tool_result", "completed", "WebSearch"),
        TranscriptEntry("tool_call", '{"command": "make"}', "Bash"),
        TranscriptEntry("tool_result", "no\nexit code 2", "Bash"),
        TranscriptEntry("error", "odd"),
        TranscriptEntry("error", "The agent reported a failure without a reason."),
    ]


def test_opencode_error_keeps_headers_and_body_to_itself() -> None:
    """An error entry is the message only, without the server's headers and body."""
    data = {"message": "no", "responseHeaders": {"x-key": "value"}, "responseBody": "body"}
    events = [{"type": "error", "error": {"name": "APIError", "data": data}}, {"type": "error"}]
    assert adapter_for("opencode").transcript().feed(lines(events)) == [TranscriptEntry("error", "no")]


_TYPES: Final = ("assistant", "user", "item.completed", "message", "tool_use", "tool_result", "error", "result")
_ODD: Final[list[object]] = [
    {"type": name, "message": 1, "item": [], "part": "x", "content": {}, "data": 0} for name in _TYPES
]


@pytest.mark.parametrize("agent", sorted(ADAPTERS))
def test_no_json_breaks_a_transcript(agent: str) -> None:
    """The reader accepts any JSON with any fields."""
    transcript = adapter_for(agent).transcript()
    events: list[object] = [42, None, [], {"type": 1}, {"type": "result"}, {"message": {"content": [1]}}, *_ODD]
    for event in events:
        transcript.feed(lines([event]))
    assert isinstance(transcript.finish(), list)


def test_text_of_a_command_comes_by_the_line() -> None:
    """A last line without a newline comes at the end, and no output gives no entry."""
    text = CommandTranscript()
    assert text.feed(b"one") == []
    assert text.feed(b"\ntwo") == [TranscriptEntry("text", "one")]
    assert text.finish() == [TranscriptEntry("text", "two")]
    assert CommandTranscript().finish() == []


def test_events_of_a_command_are_read_as_events() -> None:
    """The first line decides that the output is events, however the stream is cut."""
    events = CommandTranscript()
    stream = lines([{"type": "text", "text": "hello"}, {"type": "result", "result": "/bug"}])
    assert events.feed(stream[:20]) == []
    assert events.feed(stream[20:]) == [TranscriptEntry("text", "hello"), TranscriptEntry("result", "/bug")]
    assert events.finish() == []


def test_gemini_pieces_are_joined() -> None:
    """Pieces of one message are one text, which appears at the message's end."""
    transcript = adapter_for("gemini").transcript()
    piece = {"type": "message", "role": "assistant", "delta": True}
    assert transcript.feed(lines(piece | {"content": text} for text in ("/fea", "ture"))) == []
    assert transcript.finish() == [TranscriptEntry("text", "/feature")]
