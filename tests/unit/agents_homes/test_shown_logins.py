"""A command that prints an agent's output masks the keys in the CLIs' own files, as the worker does."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from fakes.logins import FILES, log_in, login
from fakes.run_records import RECORD

from septet.agents.runs.folders import Runs

SECONDS = 60.0


@pytest.mark.parametrize("options", [(), ("--json",), ("--raw",)], ids=["text", "json", "raw"])
def test_septet_logs_shows_no_login(options: tuple[str, ...], tmp_path: Path) -> None:
    """The keys of every CLI are masked, because an agent without a sandbox can read them all."""
    access = [f"access-{agent}-of-ann-1" for agent in FILES if agent != "codex"]
    for agent in FILES:
        log_in(tmp_path / "user", agent, login(agent, 1, account=f"{agent}-of-ann"))
    run, lock = Runs(tmp_path / "state" / "runs").create("wo-1", 5, RECORD, b"Work.")
    os.close(lock)
    said = f"It says {' and '.join(access)}."
    event = f'{{"type":"assistant","message":{{"content":[{{"type":"text","text":"{said}"}}]}}}}\n'
    run.stdout.write_text(event, encoding="utf-8")
    (run.folder / "exit.json").write_text('{"cause": "exited", "exit_code": 0}', encoding="utf-8")
    env = {"PATH": os.defpath, "HOME": str(tmp_path / "user"), "SEPTET_STATE_DIR": str(tmp_path / "state")}
    argv = [str(Path(sys.executable).parent / "septet"), "logs", "wo-1", *options]
    shown = subprocess.run(argv, env=env, capture_output=True, text=True, check=False, timeout=SECONDS)
    assert "It says *** and" in shown.stdout, shown
    assert [key for key in access if key in shown.stdout] == []
