"""A small real agent CLI that serves many turns from its stdin, as claude does, by a test's program."""

import sys
import textwrap
from pathlib import Path

from fakes.agent_programs import PRELUDE

_TURNS = """
import json
heard_in = os.path.join({root!r}, session)
number = 0
for line in iter(sys.stdin.readline, ""):
    message = json.loads(line)
    prompt, number = message["message"]["content"], number + 1
    with open(heard_in, "a") as file:
        file.write(prompt.splitlines()[-1] + ";")
    heard = open(heard_in).read()
    note("turn %d of %d" % (number, os.getpid()))
    init()
    say(json.dumps({{"type": "user", "uuid": message["uuid"], "message": message["message"]}}))
    exec(body)
"""


def warm_program(path: Path, body: str) -> str:
    """Write a program whose `body` runs for each turn, with its `number`, and `heard`, all prompts."""
    prelude = PRELUDE.format(python=sys.executable, journal=str(path.with_name("journal")))
    text = f"{prelude}body = {textwrap.dedent(body)!r}\n{_TURNS.format(root=str(path.parent))}"
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
    return str(path)
