"""Small real agent CLIs that print claude's stream-json and do what a test's program says."""

import sys
import textwrap
from pathlib import Path

from fakes.shell_programs import write_program

_PROMPT = """\
# With an input stream a turn is a line, and stdin stays open for the next one.
prompt = sys.stdin.readline() if "--input-format" in argv else sys.stdin.read()
"""
PRELUDE = """\
#!{python} -IS
import os, signal, sys, time

def say(text):
    os.write(1, text.encode() + b"\\n")

def init():
    say('{{"type":"system","subtype":"init","session_id":"%s","model":"fake-1"}}' % session)

def turn(name):
    say('{{"type":"assistant","message":{{"id":"%s","model":"fake-1","content":[],'
        '"usage":{{"input_tokens":5,"output_tokens":2}}}},"session_id":"%s"}}' % (name, session))

def result(text, more=""):
    say('{{"type":"result","subtype":"success","is_error":false,"result":"%s","session_id":"%s"%s}}'
        % (text, session, more))

def api_error(status, words="", more=""):
    say('{{"type":"result","subtype":"success","is_error":true,"api_error_status":%d,"terminal_reason":"api_error",'
        '"result":"%s","session_id":"%s"%s}}' % (status, words or "API Error: %d" % status, session, more))
    sys.exit(1)

def note(text):
    with open({journal!r}, "a") as journal:
        journal.write(text + "\\n")

def wait_for(path):
    for _ in range(3000):
        if os.path.exists(path):
            return
        time.sleep(0.01)
    sys.exit("waited in vain for " + path)

def detached(action):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            action()
        os._exit(0)
    os.wait()

argv = sys.argv[1:]
resumed = "--resume" in argv
session = argv[argv.index("--resume") + 1] if resumed else argv[argv.index("--session-id") + 1]
note("start " + ("resume" if resumed else "new"))
"""


def agent_program(path: Path, body: str) -> str:
    """Write a program whose `body` may use all names of the prelude, and return its path."""
    prelude = PRELUDE.format(python=sys.executable, journal=str(path.with_name("journal")))
    return str(write_program(path, prelude + _PROMPT + textwrap.dedent(body)))


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
    return str(write_program(path, text))
