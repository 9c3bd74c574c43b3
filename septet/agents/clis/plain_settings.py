"""Reduce a CLI's settings file for a guest: only settings for login and model stay, and nothing that runs.

MCP servers, their keys, hooks, plug-ins and commands are left out, unless `SEPTET_GUEST_PATHS` names the file.
"""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

_COMMENTS: Final = re.compile(r'("(?>(?:\\.|[^"\\])*)"?)|//[^\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
_LAST_COMMA: Final = re.compile(r'("(?>(?:\\.|[^"\\])*)"?)|,(?=\s*[}\]])')
_BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """A settings file of a CLI; a guest gets a copy with only the settings in `kept`."""

    name: str
    """The path of the settings file; `~` is the user's home."""
    kept: tuple[str, ...] = ()
    """The keys that a guest gets, with dots between the keys of nested objects; the file is left out if no key is
    named."""

    def reduce(self, content: bytes | None) -> bytes | None:
        """Return the content of the file for a guest; `None` if nothing is left or the content cannot be read."""
        document = read_document(self.name, content) if content is not None else None
        kept: dict[str, Any] = {}
        for key in self.kept:
            _copy(document or {}, kept, key.split("."))
        if not kept:
            return None
        is_toml = self.name.endswith(".toml")
        return "".join(f"{line}\n" for line in _toml(kept)).encode() if is_toml else json.dumps(kept).encode()


def read_document(name: str, content: bytes) -> dict[str, Any] | None:
    """Return the document in `content`, read as TOML or JSON by the file's name; `None` if it cannot be read."""
    if not name.endswith(".toml"):
        return read_object(content)
    try:
        return tomllib.loads(content.decode())
    except (ValueError, RecursionError):
        return None


def read_object(content: bytes) -> dict[str, Any] | None:
    """Return the JSON object in `content`, which may have comments; `None` for anything else."""
    try:
        text = content.decode()
        try:
            document = json.loads(text)
        except ValueError:
            plain = _COMMENTS.sub(lambda match: match[1] or "", text)
            document = json.loads(_LAST_COMMA.sub(lambda match: match[1] or "", plain))
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _copy(source: Mapping[str, Any], target: dict[str, Any], keys: list[str]) -> None:
    """Copy the value at a path of keys from `source` to `target`, if `source` has the value."""
    value = source.get(keys[0])
    if len(keys) == 1 and keys[0] in source:
        target[keys[0]] = value
    elif len(keys) > 1 and isinstance(value, dict):
        below: dict[str, Any] = {}
        _copy(value, below, keys[1:])
        if below:
            target.setdefault(keys[0], {}).update(below)


def _toml(table: Mapping[str, Any], at: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield the lines of a table, and of its inner tables, as TOML."""
    below = {key: value for key, value in table.items() if isinstance(value, dict)}
    if at:
        yield f"[{'.'.join(map(_key, at))}]"
    for key, value in table.items():
        if key not in below:
            yield f"{_key(key)} = {_value(value)}"
    for key, value in below.items():
        yield from _toml(value, (*at, key))


def _key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else _value(key)


def _value(value: object) -> str:
    """Return a value as TOML; a JSON string is also a TOML string, except for DEL."""
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_key(key)} = {_value(each)}' for key, each in value.items())}}}"
    if isinstance(value, (bool, str)):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return str(value)
