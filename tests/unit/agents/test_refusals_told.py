"""The prompt of the next agent names the hosts that the network refused."""

import pytest
from fakes.agent_lab import Lab
from fakes.guest_kinds import confine

ASKS = """
import socket, os
init()
for line in ("CONNECT index.example:443", "CONNECT index.example:443", "CONNECT " + "x" * 300 + ":443"):
    with socket.create_connection(("127.0.0.1", 61128)) as way:
        way.sendall(line.encode() + b" HTTP/1.1\\r\\n\\r\\n")
        way.recv(100)
turn("m1"); result("done")
"""


@pytest.mark.needs("bubblewrap")
async def test_the_next_agent_is_told_once_of_a_refused_host(lab: Lab) -> None:
    """The next prompt names the host and port; the prompt after it does not, though the host was refused again."""
    confine(lab)
    lab.agent(ASKS)
    for number in range(3):
        await lab.run_turn(lab.request(activity_id=str(number)))
    prompts = [(run.folder / "prompt.md").read_text(encoding="utf-8") for run in lab.runtime.runs.of("wo-1")]
    assert ["index.example:443" in prompt for prompt in prompts] == [False, True, False]
    assert [prompt.count("xxx") for prompt in prompts] == [0, 0, 0]
