"""A forge that answers on loopback: its API, git over smart HTTP, and the faults that a test adds."""

import copy
import hashlib
import json
import os
import subprocess
import threading
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import TypeVar
from urllib.parse import parse_qs, urlsplit

from fakes.forges.description import description_of
from fakes.forges.state import Answer, Asked, Fault, ForgeFake
from fakes.git_http import body_of, run_backend
from fakes.listening import QuietHandler, listening
from fakes.shell_programs import write_program

_HOOK = """#!/bin/sh
case " %s " in *" ${1#refs/heads/} "*) echo "GH006: Protected branch update failed for $1." >&2; exit 1;; esac
"""


REDIRECTS = (HTTPStatus.MOVED_PERMANENTLY, HTTPStatus.FOUND, HTTPStatus.TEMPORARY_REDIRECT)
Fake = TypeVar("Fake", bound=ForgeFake)


@contextmanager
def serving_forge(served: Fake) -> Iterator[Fake]:  # noqa: C901 -- the handler closes over its forge
    """Let the forge answer on 127.0.0.1 during the block; its address is `url`."""
    protect(served)
    ended = threading.Event()

    class Handler(QuietHandler):
        def handle_any(self) -> None:
            content = body_of(self)
            parts = urlsplit(self.path)
            forge = served.at(parts.path)
            if ".git/" in parts.path:
                self._answer_git(forge, content)
                return
            headers = {name.lower(): value for name, value in self.headers.items()}
            body = json.loads(content) if content else None
            asked = Asked(self.command, parts.path, headers, parse_qs(parts.query, keep_blank_values=True), body)
            with forge.lock:
                forge.asked.append(asked)
                fault = _fault_for(forge, asked)
                answer = self._answer(forge, asked, fault)
            if fault is not None and fault.lie == "slow":
                ended.wait(fault.seconds)
            if answer is not None:
                self.answer(*answer)

        def _answer(
            self, forge: ForgeFake, asked: Asked, fault: Fault | None
        ) -> tuple[int, dict[str, str], bytes] | None:
            before = copy.deepcopy(forge.pulls) if fault is not None and fault.lie == "stale" else {}
            if fault is None or fault.after or fault.lie in {"slow", "truncated", "wrong_type", "stale"}:
                if fault is not None and fault.lie == "stale":
                    forge.stale_pulls = {} if asked.method == "GET" else before
                status, answer = _true_answer(forge, asked)
                forge.stale_pulls = None
                whole = (
                    answer if isinstance(answer, bytes) else b"" if answer is None else json.dumps(answer).encode()
                )
            if fault is None or fault.lie in {"slow", "stale"}:
                return _unless_known(forge, asked, status, whole)
            if fault.lie == "drop":
                self.close_connection = True
                return None
            if fault.lie == "truncated":
                self.close_connection = True
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(whole)))
                self.end_headers()
                self.wfile.write(whole[: len(whole) // 2])
                return None
            if fault.lie == "wrong_type":
                status = fault.status if fault.status in range(200, 300) else 200
                return status, {"Content-Type": "application/json"}, b'{"number": "seven", "state": []}'
            return fault.status, fault.headers, fault.content

        def _answer_git(self, forge: ForgeFake, content: bytes) -> None:
            given = self.headers.get("Authorization", "").removeprefix("Basic ")
            if b64decode(given).decode().rpartition(":")[2] != forge.token:
                self.answer(401, {"WWW-Authenticate": 'Basic realm="git"'}, b"")
                return
            assert forge.repositories is not None
            is_push = "git-receive-pack" in self.path
            if is_push and any(self.path.startswith(f"/{project}.git/") for project in forge.read_only):
                self.answer(403, {}, b"")
                return
            asked = Asked(self.command, self.path, {}, {}, content.decode(errors="replace"))
            with forge.lock:
                fault = _fault_for(forge, asked) if self.path.endswith("/git-receive-pack") else None
            if fault is None or fault.after:
                answer = run_backend(forge.repositories, self.command, self.path, self.headers, content)
            if fault is None:
                self.answer(*answer)
            elif fault.lie == "drop":
                self.close_connection = True
            else:
                self.answer(fault.status, fault.headers, b"")

    with listening(Handler) as served.url:
        try:
            yield served
        finally:
            ended.set()


def _unless_known(forge: ForgeFake, asked: Asked, status: int, whole: bytes) -> tuple[int, dict[str, str], bytes]:
    """Return an answer with its ETag, or 304 if the client has the same answer."""
    headers = {"Content-Type": "application/json"}
    if status in REDIRECTS:
        return status, {"Location": json.loads(whole)}, b"{}"
    if asked.method == "GET" and status == HTTPStatus.OK and forge.has_etags:
        headers["ETag"] = f'W/"{hashlib.sha256(whole).hexdigest()}"'
        if asked.headers.get("if-none-match") == headers["ETag"]:
            return HTTPStatus.NOT_MODIFIED, {"ETag": headers["ETag"]}, b""
    return status, headers, whole


def _true_answer(forge: ForgeFake, asked: Asked) -> Answer:
    if not asked.path.startswith("/_") and not forge.is_authorized(asked):
        return 401, {"message": "Bad credentials"}
    if (led := forge.redirect(asked)) is not None:
        return led
    with forge.one_answer():
        status, answer = forge.answer(asked)
    beside = ("/_", "/repositories/", "/graphql")  # the addresses that only GitHub's answers name
    if status not in REDIRECTS and not asked.path.startswith(beside):
        path = asked.path.removeprefix(forge.api_path)
        told = description_of(forge.name).deviations(asked.method, path, asked.query, asked.body, status, answer)
        forge.deviations += told
    return status, answer


def _fault_for(forge: ForgeFake, asked: Asked) -> Fault | None:
    """Return the first fault that fits a request, and count it."""
    for fault in forge.faults:
        told = f"{asked.body} {asked.query}"
        if fault.method in {"", asked.method} and fault.path in asked.path and fault.about in told:
            fault.met += 1
            if fault.met % fault.every:
                continue
            fault.times -= 1
            if fault.times <= 0:
                forge.faults.remove(fault)
            forge.seen_faults.append(fault)
            return fault
    return None


def protect(forge: ForgeFake) -> None:
    if forge.repositories is None:
        return
    for bare in forge.repositories.glob("*/*.git"):
        write_program(bare / "hooks" / "update", _HOOK % " ".join(sorted(forge.protected)))
        allow = ["git", "config", "http.receivepack", "true"]
        subprocess.run(allow, cwd=bare, check=True, env={"PATH": os.environ["PATH"]})
