"""Find keys in environment variables and in CLIs' files, and hide the keys of this process's environment."""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from urllib.parse import unquote

_DESCRIPTOR: Final = "SEPTET_KEYS_DESCRIPTOR"
"""The variable with the descriptor of a file of keys, which a process sets for itself when it starts again."""
_KNOWN: Final = frozenset({
    "ANTHROPIC_CUSTOM_HEADERS", "AWS_BEARER_TOKEN_BEDROCK", "MYSQL_PWD", "OPENCODE_CONFIG_CONTENT",
    "TEMPORAL_TLS_CLIENT_KEY_DATA",
})  # fmt: skip
_NAME: Final = re.compile(
    r"(?:.*_)?(?:TOKEN|KEY|SECRET|PAT|PASSPHRASE|CREDENTIALS)|.*PASSWORD.*|.*_SECRET_.*", re.IGNORECASE
)
_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+")
_FIELD: Final = re.compile(
    r"(?!ENV_)(?:.*(?:TOKEN|SECRET|PASSWORD)|(?:.*_)?(?:(?:API|AUTH)?KEY|PASSPHRASE|CREDENTIAL|AUTHORIZATION|COOKIE|PAT))S?"
    r"|ACCESS|REFRESH"
)
"""The pattern of the names of fields with keys; each name is put into capitals before the comparison."""
_KEY: Final = re.compile(r"(?=.*\d|.{20})(?![{$]|[A-Z][A-Z0-9]*_[A-Z0-9_]*\Z).{8,}")
"""The pattern of a key: no placeholder, no name of a variable, and with a digit if it is short."""
_ACCOUNT: Final = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*://)?[^/?#\s:@]*:([^/?#\s]+)@")
"""The pattern of an address with a password, for example of a proxy or a database."""


def is_key(name: str, value: str) -> bool:
    """Return whether a variable contains a key, by its name or because its value is an address with a password."""
    return name in _KNOWN or bool(_NAME.fullmatch(name)) or _ACCOUNT.match(value) is not None


def key_values(env: Mapping[str, str]) -> frozenset[str]:
    """Return the secret values of variables: keys, and passwords in addresses, but not the paths of key files."""
    found = set[str]()
    for value in (value for name, value in env.items() if is_key(name, value)):
        if (account := _ACCOUNT.match(value)) is not None:
            found |= {account[1], unquote(account[1])}
        elif not _names_file(value):
            found |= {value.strip(), *keys_in(_document_in(value))}
    return frozenset(found)


def keys_in(document: object, name: str = "") -> frozenset[str]:
    """Return the secret values in a CLI's file: keys, by the names of their fields, and passwords in addresses.

    Names of variables, placeholders such as `{env:NAME}`, and words do not count, even in such fields. A value of
    less than twenty characters counts only with a digit. `name` is the field that contains `document`.
    """
    if isinstance(document, str):
        account = _ACCOUNT.match(document) if "://" in document else None
        words = document.split() if _is_key_field(name) else ()
        found = frozenset(word for word in words if _KEY.fullmatch(word) and not _names_file(word))
        return found if account is None else found | {account[1], unquote(account[1])}
    if isinstance(document, list):
        return frozenset[str]().union(*(keys_in(each, name) for each in document))
    if not isinstance(document, dict):
        return frozenset()
    # the tokens of several accounts are under their addresses
    names = {key: key if str(key).isidentifier() or not _is_key_field(name) else name for key in document}
    return frozenset[str]().union(*(keys_in(each, str(names[key])) for key, each in document.items()))


def _is_key_field(name: str) -> bool:
    return _FIELD.fullmatch("_".join(_WORDS.findall(name)).upper()) is not None


def take_keys_out_of_sight() -> None:
    """Start this process again without keys in its environment, which other processes of the user can read.

    The new program reads the keys from an open file without a name. It adds the keys to its environment in memory,
    which the system does not show. Call this function before any file is open and any thread runs. Without keys,
    nothing happens.
    """
    if (descriptor := os.environ.pop(_DESCRIPTOR, None)) is not None:
        os.environ.update(_read(descriptor))
        return
    keys = {name: value for name, value in os.environ.items() if is_key(name, value)}
    if not keys:
        return
    kept = {name: value for name, value in os.environ.items() if name not in keys}
    flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]  # noqa: SLF001 -- no public one
    argv = [sys.executable, *flags, *sys.argv]
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(argv[0], argv, {**kept, _DESCRIPTOR: str(_write(keys))})


def _document_in(value: str) -> object:
    try:
        return json.loads(value) if value.lstrip().startswith("{") else None
    except (ValueError, RecursionError):
        return None


def _names_file(value: str) -> bool:
    try:
        return value.startswith(("/", "~/")) and Path(value).expanduser().exists()
    except (OSError, ValueError, RuntimeError):
        return False


def _write(keys: Mapping[str, str]) -> int:
    """Write the keys to an open file without a name, and return its descriptor, which a new program inherits."""
    content = json.dumps(dict(keys)).encode()
    if sys.platform == "linux":
        descriptor = os.memfd_create("septet-keys")
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    with os.fdopen(os.dup(descriptor), "wb") as writer:
        writer.write(content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    os.set_inheritable(descriptor, True)
    return descriptor


def _read(descriptor: str) -> dict[str, str]:
    """Return the keys in the open file `descriptor`, and close it; empty if the file is not open or not valid."""
    try:
        with os.fdopen(int(descriptor), "rb") as file:
            keys = json.loads(file.read())
    except (OSError, ValueError):
        return {}
    return {str(name): str(value) for name, value in keys.items()} if isinstance(keys, dict) else {}
