"""Prism (npm `@stoplight/prism-cli`) as an independent proxy before a fake, which checks requests and answers."""

import json
import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

from fakes.forges.description import DATA
from fakes.forges.state import Json

_PROGRAM: Final = Path(__file__).parents[2] / "npm/node_modules/@stoplight/prism-cli/dist/index.js"
_STARTS_WITHIN_SECONDS: Final = 120


@dataclass
class Prism:
    url: str = ""
    lines: list[str] = field(default_factory=list)
    listens: threading.Event = field(default_factory=threading.Event)

    @property
    def complaints(self) -> list[str]:
        return [line for line in self.lines if "violation" in line.lower() or "✖" in line]


@contextmanager
def serving_prism(document: Path, upstream: str) -> Iterator[Prism]:
    """Run Prism before a server during the block; Prism answers a deviation with 422 or 500."""
    args = ["proxy", str(document), upstream, "--errors", "--host", "127.0.0.1", "--port", "0"]
    with subprocess.Popen(
        ["node", str(_PROGRAM), *args], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        prism = Prism()

        def read() -> None:
            assert process.stdout is not None
            for line in process.stdout:
                prism.lines.append(line.rstrip())
                if found := re.search(r"Prism is listening on (http://\S+?:\d+)", line):
                    prism.url = found[1]
                    prism.listens.set()
            prism.listens.set()

        reader = threading.Thread(target=read)
        reader.start()
        try:
            assert prism.listens.wait(_STARTS_WITHIN_SECONDS)
            assert prism.url, f"{prism.lines[-20:]} (npm ci --prefix tests/npm)"
            yield prism
        finally:
            process.terminate()
            reader.join()


@cache
def openapi_document(name: str) -> Json:
    """Return the described part of a forge's API (see `scripts/describe-forge`) as an OpenAPI 3 document."""
    described = json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))
    document: dict[str, Any] = {"openapi": "3.0.3", "info": {"title": name, "version": "1"}, "paths": {}}
    for path, operations in described["paths"].items():
        document["paths"][_path_of(path)] = {
            method.lower(): each | {"responses": _with_words(each["responses"])}
            for method, each in operations.items()
        }
    for reference, value in described["known"].items():
        *folders, last = reference.removeprefix("#/").split("/")
        place = document
        for folder in folders:
            place = place.setdefault(folder, {})
        place[last] = value | {"description": ""} if "responses" in folders else value
    return _with_plain_nulls(document)


def _with_words(responses: Json) -> Json:
    """Return responses with the descriptions that OpenAPI requires: Prism ignores a response without it."""
    return {status: each if "$ref" in each else each | {"description": ""} for status, each in responses.items()}


def _path_of(path: str) -> str:
    """Return a path in Prism's form: GitHub's `ref` may hold slashes, and a placeholder of Prism may not."""
    return path.replace("/git/matching-refs/{ref}", "/git/matching-refs/heads/{ref}")


def _with_plain_nulls(value: Json) -> Json:
    """Return a document in which each `nullable` has a type: Prism silently ignores a schema without a type."""
    if isinstance(value, list):
        return [_with_plain_nulls(each) for each in value]
    if not isinstance(value, dict):
        return value
    plain = {key: _with_plain_nulls(each) for key, each in value.items()}
    if plain.get("nullable") is True and "type" not in plain:
        del plain["nullable"]
        return {"anyOf": [plain, {"type": "object", "nullable": True, "not": {"type": "object"}}]}
    return plain
