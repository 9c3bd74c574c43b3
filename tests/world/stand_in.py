"""The program that stands in for all five CLIs: it acts and prints as the case of its work order requires.

The program starts under the CLI's name, and finds its case by the name of the workspace, the work order's id.
"""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import uuid
from typing import Any

_VERSIONS = {
    "claude": "2.1.329 (Claude Code)", "codex": "codex-cli 0.169.0", "copilot": "GitHub Copilot CLI 1.0.102",
    "gemini": "0.61.0", "opencode": "1.18.33",
}  # fmt: skip
_USED = {
    "input_tokens": 100,
    "output_tokens": 10,
    "cache_read_input_tokens": 7,
    "cache_creation_input_tokens": 3,
}


def main() -> None:
    """Print the version, take one turn, or take each turn on stdin."""
    name, argv = pathlib.Path(sys.argv[0]).name, sys.argv[1:]
    if "--version" in argv or "-v" in argv:
        sys.stdout.write(_VERSIONS[name] + "\n")
        return
    if "--input-format" not in argv:
        Turn(name, argv, sys.stdin.read()).take()
        return
    for line in sys.stdin:
        message = json.loads(line)
        turn = Turn(name, argv, message["message"]["content"])
        turn.event(type="user", uuid=message["uuid"], message=message["message"])
        turn.take()


class Turn:
    def __init__(self, name: str, argv: list[str], prompt: str) -> None:
        """Find the turn's step and number, and log the start."""
        self.name, self.argv = name, argv
        self.case = pathlib.Path(sys.argv[0]).absolute().parent.parent / "cases" / pathlib.Path.cwd().name
        self.plan = json.loads((self.case / "plan.json").read_text())
        self.resumed = self._resumed()
        self.session = self.resumed or self._option("--session-id") or self._new_session()
        log = self.case / "calls.jsonl"
        before = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
        self.step, self.of = self._step(prompt, before)
        number = sum(
            each["step"] == self.step and each["of"] == self.of and bool(each["resumed"]) >= self._has_own_turns
            for each in before
        )
        self.told = self._told(number)
        call = {"step": self.step, "of": self.of, "session": self.session, "resumed": self.resumed, "argv": argv}
        with log.open("a") as calls:
            calls.write(json.dumps({**call, "prompt": prompt, "at": time.time()}) + "\n")

    def take(self) -> None:
        if self.told.get("stdout") is None:
            getattr(self, f"_take_{self.name}")()
        else:
            self._act(self.told)
            pieces = self.told["stdout"]
            for piece in pieces if isinstance(pieces, list) else [pieces]:
                self._print_piece(piece)
        sys.stderr.write(self.told.get("stderr", ""))
        sys.stderr.flush()
        if self.told.get("kill"):
            os.kill(os.getpid(), signal.SIGKILL)
        if self.told.get("exit"):
            sys.exit(self.told["exit"])

    @property
    def _has_own_turns(self) -> bool:
        """Return whether the case has turns for starts that resume a session of this step."""
        return bool(self.resumed) and f"resumed:{self.step}" in self.plan["turns"]

    @property
    def text(self) -> str:
        return str(self.told["text"]).replace("{answer}", self.told["answer"])

    def event(self, **event: Any) -> None:
        named = {"session_id": self.session, "uuid": str(uuid.uuid4()), **event}
        self._print(json.dumps(named, ensure_ascii=False) + "\n")

    def _take_claude(self) -> None:
        self.event(
            type="system", subtype="init", cwd=str(pathlib.Path.cwd()), tools=[], mcp_servers=[], model=self._model("claude-x"),
            permissionMode="bypassPermissions", apiKeySource="none", claude_code_version="2.1.329",
        )  # fmt: skip
        self._act(self.told)
        for event in self.told.get("events", []):
            self.event(**event)
        if self.told.get("message", True):
            said = {"type": "text", "text": self.text}
            message = {"id": "msg_1", "model": "claude-x", "role": "assistant", "content": [said], "usage": _USED}
            self.event(type="assistant", message=message)
        if self.told.get("result", True):
            result = {
                "type": "result", "subtype": "success", "is_error": False, "result": self.text, "duration_ms": 5,
                "num_turns": 1, "total_cost_usd": 0.01, "usage": _USED, "permission_denials": [],
            }  # fmt: skip
            self.event(**{**result, **self.told.get("more", {})})
        for event in self.told.get("after", []):
            if "act" in event:
                self._act(event["act"])
            else:
                self.event(**event)

    def _take_codex(self) -> None:
        said = {"id": "item_0", "type": "agent_message", "text": self.text}
        used = {"input_tokens": 100, "cached_input_tokens": 7, "output_tokens": 10, "reasoning_output_tokens": 0}
        self._lines({"type": "thread.started", "thread_id": self.session}, {"type": "turn.started"})
        self._act(self.told)
        self._lines({"type": "item.completed", "item": said}, {"type": "turn.completed", "usage": used})

    def _take_gemini(self) -> None:
        self._lines({"type": "init", "session_id": self.session, "model": self._model("gemini-x")})
        self._act(self.told)
        used = {"total_tokens": 110, "input_tokens": 100, "output_tokens": 10, "cached": 7, "tool_calls": 0}
        self._lines(
            {"type": "message", "role": "assistant", "content": self.text, "delta": True},
            {"type": "result", "status": "success", "stats": used},
        )

    def _take_opencode(self) -> None:
        self._act(self.told)
        tokens = {"input": 100, "output": 10, "reasoning": 0, "cache": {"read": 7, "write": 3}}
        ended = {"type": "step-finish", "reason": "stop", "tokens": tokens, "cost": 0.01}
        self._lines(
            {"type": "step_start", "sessionID": self.session, "part": {"type": "step-start"}},
            {"type": "text", "sessionID": self.session, "part": {"type": "text", "text": self.text}},
            {"type": "step_finish", "sessionID": self.session, "part": ended},
        )

    def _take_copilot(self) -> None:
        self._lines({"type": "assistant.turn_start", "data": {"turnId": "0"}})
        self._act(self.told)
        self._lines(
            {"type": "assistant.message", "data": {"model": "gpt-x", "content": self.text, "toolRequests": []}},
            {"type": "assistant.turn_end", "data": {"turnId": "0"}},
            {"type": "result", "sessionId": self.session, "exitCode": 0},
        )

    def _act(self, act: dict[str, Any]) -> None:
        time.sleep(act.get("sleep", 0))
        for name, text in act.get("files", {}).items():
            path = pathlib.Path(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        if act.get("shell"):
            with (self.case / "shell.log").open("ab") as log:
                told = {"ORIGIN": self.plan["origin"], "CASE": self.plan["folder"]}
                argv = ["bash", "-c", act["shell"]]
                subprocess.run(
                    argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env={**os.environ, **told}, check=False
                )

    def _print_piece(self, piece: Any) -> None:
        if isinstance(piece, (int, float)):
            time.sleep(piece)
        elif isinstance(piece, str):
            self._print(self._filled(piece))
        else:
            self._act(piece)
            sys.stderr.write(piece.get("stderr", ""))
            sys.stderr.flush()
            if piece.get("read"):
                self._print(self._filled(pathlib.Path(self.plan["folder"], piece["read"]).read_text()))

    def _filled(self, text: str) -> str:
        names = {
            "{session}": self.session,
            "{text}": json.dumps(self.text, ensure_ascii=False),
            "{plain}": self.text,
        }
        return re.sub("|".join(map(re.escape, names)), lambda found: names[found[0]], text)

    def _lines(self, *events: dict[str, Any]) -> None:
        for event in events:
            self._print(json.dumps(event, ensure_ascii=False) + "\n")

    def _print(self, text: str) -> None:
        sys.stdout.buffer.write(text.encode("utf-8", "surrogateescape"))
        sys.stdout.flush()

    def _told(self, number: int) -> dict[str, Any]:
        turns, answers = self.plan["turns"], self.plan["answers"]
        told = turns.get(f"finalizer:{self.of}", turns.get(self.step)) if self.of else turns.get(self.step, {})
        told = turns[f"resumed:{self.step}"] if self._has_own_turns else told
        if isinstance(told, list):
            told = told[min(number, len(told) - 1)]
        answer = answers.get(self.of or self.step, "done")
        told = {"text": "{answer}", **self.plan["every"], **(told or {"works": not self.of}), "answer": answer}
        usual = self.plan["files"].get(self.step, {}) if told.get("works") else {}
        return {**told, "files": {**usual, **told.get("files", {})}}

    def _step(self, prompt: str, before: list[dict[str, Any]]) -> tuple[str, str]:
        """Return the turn's step; for a finalizer, `finalizer` and the step of the answer."""
        asked = re.search(r"(?:not a valid answer for|answer for) the step `(\w+)`", prompt)
        if asked:
            return "finalizer", asked[1]
        heading = re.search(r"^# (\w+)", "\n".join(prompt.split("\n")[:5]), re.MULTILINE)
        if heading:
            return re.sub("_(bug|feature|chore)$", "", heading[1]), ""
        began = [each["step"] for each in before if each["session"] == self.session and not each["of"]]
        return (began or ["resumed"])[-1], ""

    def _resumed(self) -> str:
        if self.name == "codex":
            return self.argv[-2] if "resume" in self.argv else ""
        glued = [part.partition("=")[2] for part in self.argv if part.startswith("--resume=")]
        return (glued or [self._option("--resume") or self._option("--session")])[0]

    def _new_session(self) -> str:
        return f"ses_{uuid.uuid4().hex[:20]}" if self.name == "opencode" else str(uuid.uuid4())

    def _model(self, usual: str) -> str:
        return self._option("--model") or self._option("-m") or usual

    def _option(self, name: str) -> str:
        return self.argv[self.argv.index(name) + 1] if name in self.argv else ""


if __name__ == "__main__":
    main()
