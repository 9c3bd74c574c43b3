"""Tool calls that a model printed as text, and texts that only quote a call."""

import json

import pytest

from septet.answers.reasoning import ends_in_printed_call

INVOKE = '<invoke name="Bash">\n<parameter name="command">make test</parameter>\n</invoke>'
CALL = '{"name": "bash", "arguments": {"command": "make test"}}'
BAR = "\N{FULLWIDTH VERTICAL LINE}"
ANSWER = {"success": True, "summary": "x", "key_changes_made": [], "key_learnings": []}


@pytest.mark.parametrize(
    "text",
    [
        f"I will now run the tests.\n\ncourt\n{INVOKE}",
        f"<function_calls>\n{INVOKE}\n</function_calls>",
        f"<tool_call>\n{CALL}\n</tool_call>\n",
        f"[TOOL_CALLS][{CALL}]",
        "<function=bash>\n<parameter=command>\nmake test\n</parameter>\n</function>\n</tool_call>",
        f"<|tool_call_begin|>functions.bash:0<|tool_call_argument_begin|>{CALL}<|tool_call_end|>",
        f"<{BAR}tool\u2581calls\u2581begin{BAR}>bash\n{CALL}<{BAR}tool\u2581calls\u2581end{BAR}>",
        '<|tool_call>call:bash{command:<|"|>make test<|"|>}<tool_call|>',
        f'<{BAR}DSML{BAR}function_calls>\n<{BAR}DSML{BAR}invoke name="bash">x</{BAR}DSML{BAR}function_calls>',
        f"<|START_ACTION|>[{CALL}]<|END_ACTION|>",
        CALL,
        '{"tool": "shell", "input": {"command": "ls"}}',
        f"<think>Which tool?</think>\n{CALL}",
    ],
)
def test_a_text_that_ends_in_a_call_is_noticed(text: str) -> None:
    """A text that ends in a tool call is recognized in every form, because the call was never carried out."""
    assert ends_in_printed_call(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        json.dumps(ANSWER | {"summary": f"The parser drops\n{INVOKE}"}),
        json.dumps(ANSWER | {"summary": f"The parser drops\n{INVOKE}"}).replace("\\n", "\n"),
        f"The parser drops this:\n\n```xml\n{INVOKE}\n```",
        f"The parser drops this:\n\n{INVOKE}\n\nAll tests pass.",
        f"{INVOKE}\n\n{json.dumps(ANSWER)}\nThat was all.",
        "fix: handle <invoke> in prose",
        '{"name": "x", "arguments": {}, "success": true}',
    ],
)
def test_a_text_that_quotes_a_call_is_no_call(text: str) -> None:
    """A text about tool calls, such as a report on a parser, is no call."""
    assert not ends_in_printed_call(text)
