"""Start a work order from a GitHub Action, and tell the workflow what came of it.

`action.yml` gives its inputs as environment variables. Each becomes one argument of `septet run`: no shell reads
them, and none can become another option. It needs a Python of its own, and the `septet` program.
"""

import json
import os
import secrets
import subprocess
import sys
from collections.abc import Iterator, Mapping

_OPTIONS = {
    "--repo": "ORDER_REPOSITORY",
    "--issue": "ORDER_ISSUE",
    "--title": "ORDER_TITLE",
    "--body": "ORDER_DESCRIPTION",
    "--agent": "ORDER_AGENT",
    "--model": "ORDER_MODEL",
    "--base": "ORDER_BASE",
    "--push-to": "ORDER_PUSH_TO",
    "--address": "ORDER_ADDRESS",
}
_SWITCHES = {"--draft": "ORDER_DRAFT", "--approve-plan": "ORDER_APPROVE_PLAN", "--wait": "ORDER_WAIT"}
_SHOWN = 500


def arguments(environ: Mapping[str, str]) -> Iterator[str]:
    """Yield the arguments of `septet run`; a value stands behind its option's `=`, so that it is a value only."""
    for option, name in _OPTIONS.items():
        if value := environ.get(name, ""):
            yield f"{option}={value}"
    for label in filter(None, map(str.strip, environ.get("ORDER_LABELS", "").split(","))):
        yield f"--label={label}"
    for option, name in _SWITCHES.items():
        if environ.get(name, "").strip().lower() == "true":
            yield option
    yield f"--id={environ.get('ORDER_ID') or _id_of_run(environ)}"
    yield "--json"


def _id_of_run(environ: Mapping[str, str]) -> str:
    """Return an id that the same attempt of the same run always has, so that it starts one work order."""
    run, attempt = environ.get("GITHUB_RUN_ID", ""), environ.get("GITHUB_RUN_ATTEMPT", "1")
    return f"wo-run-{run}-{attempt}" if run.isdecimal() and attempt.isdecimal() else f"wo-{secrets.token_hex(6)}"


def main() -> int:
    """Start it; return the exit code of `septet`."""
    program = os.environ.get("ORDER_PROGRAM") or "septet"
    try:
        done = subprocess.run(
            [program, "run", *arguments(os.environ)], stdout=subprocess.PIPE, text=True, check=False
        )
    except OSError as error:
        return _fail(f"{program} cannot be started: {error.strerror}. Install Septet on this runner.", 1)
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        return _fail(f"septet did not answer with JSON: {done.stdout[:_SHOWN]}", done.returncode or 1)
    task = answer.get("task") or {}
    told = {"id": task.get("id"), "status": task.get("status"), "pull-request": task.get("pr_url")}
    _tell(told)
    reason = answer.get("error") or task.get("error")
    if reason:
        return _fail(f"{reason.get('message', '')} {reason.get('remedy') or ''}".strip(), done.returncode or 1)
    sys.stdout.write(" ".join(f"{name}: {value}" for name, value in told.items() if value) + "\n")
    return done.returncode


def _tell(values: Mapping[str, object]) -> None:
    """Write the action's outputs; a value cannot end its own block, whose delimiter is random."""
    path = os.environ.get("GITHUB_OUTPUT")
    if not path:
        return
    with open(path, "a", encoding="utf-8") as outputs:  # noqa: PTH123 -- one line for a file of the runner
        for name, value in values.items():
            mark = f"end-{secrets.token_hex(16)}"
            outputs.write(f"{name}<<{mark}\n{value or ''}\n{mark}\n")


def _fail(message: str, code: int) -> int:
    """Show an error on the run's page; what could be a command of the runner's is escaped."""
    escaped = message.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    sys.stdout.write(f"::error title=Septet::{escaped}\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
