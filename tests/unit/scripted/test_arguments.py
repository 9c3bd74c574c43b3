"""Claude's command line, and the arguments that claude refuses."""

import io

import pytest
from fakes.scripted_agent import ScriptedAgent

from septet.agents.scripted.arguments import RefusalError, parse
from septet.agents.scripted.program import Program


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--verbose=yes"], "unknown option '--verbose=yes'"),
        (["--resume"], "argument missing"),
        (["--session-id", "not-a-uuid"], "Invalid session ID"),
        (["--max-turns", "0"], "'0' is invalid"),
    ],
)
def test_a_command_line_that_claude_would_refuse_is_refused(argv: list[str], words: str) -> None:
    """The agent refuses the arguments that claude refuses, with the same words."""
    with pytest.raises(RefusalError, match=words):
        parse(argv)


def test_a_refusal_is_one_line_on_stderr_and_nothing_on_stdout(agent: ScriptedAgent) -> None:
    """A refusal is one line on stderr with exit code 1, as claude's is, and stdout stays empty."""
    ran = agent.run("x", "--no-such-flag")
    assert (ran.code, ran.events, ran.stderr) == (1, [], "error: unknown option '--no-such-flag'\n")


def test_the_version_is_asked_for_without_a_prompt() -> None:
    """`--version` prints one line and needs no prompt."""
    out = io.BytesIO()
    assert Program({}, io.BytesIO(), out, io.StringIO()).start(["--version"]) == 0
    assert out.getvalue().decode().endswith("(Septet scripted agent)\n")
