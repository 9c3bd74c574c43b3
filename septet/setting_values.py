"""Parse the values of environment variables: lists, pairs, paths and addresses."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Final

from pydantic import AfterValidator, BeforeValidator, SecretStr
from pydantic_settings import NoDecode

_REPOSITORY_OF_HOST: Final = re.compile(r"[^/\s=]+(/[^/\s=]+){2,}")
_FORK: Final = re.compile(r"[^/\s=]+(/[^/\s=]+)+")
_LOGIN_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,40}")


def split_at_commas(texts: object) -> object:
    """Return the parts of a text between commas; return a value that is not a text unchanged."""
    return tuple(text.strip() for text in texts.split(",")) if isinstance(texts, str) else texts


def in_lower_case(word: object) -> object:
    """Return a text in lower case; return a value that is not a text unchanged."""
    return word.lower() if isinstance(word, str) else word


def absolute(path: Path) -> Path:
    """Return `path` as an absolute path, with the user's home in place of `~`."""
    return path.expanduser().absolute()


def _split_forks(forks: object) -> object:
    if not isinstance(forks, str):
        return forks
    pairs = _split_pairs(forks)
    if not all(_REPOSITORY_OF_HOST.fullmatch(repository) and _FORK.fullmatch(fork) for repository, fork in pairs):
        raise ValueError("is not HOST/OWNER/NAME=OWNER/NAME, with commas between them")
    return {repository.lower(): fork for repository, fork in pairs}


def _split_teams(what: str) -> Callable[[object], object]:
    """Return a function that parses `TEAM=CHOICE` pairs; `what` names the choice in errors."""

    def split(choices: object) -> object:
        if not isinstance(choices, str):
            return choices
        pairs = _split_pairs(choices)
        if not all(name and choice for name, choice in pairs):
            raise ValueError(f"is not TEAM={what}, with commas between them")
        return {name.lower(): choice for name, choice in pairs}

    return split


def _split_pairs(text: str) -> list[tuple[str, str]]:
    pairs = (part.strip().partition("=") for part in text.split(",") if part.strip())
    return [(name.strip(), value.strip()) for name, _, value in pairs]


def split_logins(variable: str, text: str) -> dict[str, Path]:
    """Return the paths of an agent's logins by name, from `NAME=PATH` pairs; `variable` is for errors.

    Raises:
        ValueError: A part is not `NAME=PATH`, or two parts have the same name.
    """
    pairs = _split_pairs(text)
    logins = {name: Path(path) for name, path in pairs if path}
    if len(logins) < len(pairs) or not all(_LOGIN_NAME.fullmatch(name) for name in logins):
        message = f"{variable} is not valid: it is not NAME=PATH, with commas between them and each name once"
        raise ValueError(message)
    return logins


def _check_address(url: str) -> str:
    if not url.startswith(("https://", "http://")):
        raise ValueError("does not begin with https:// or http://")
    return url


Texts = Annotated[tuple[str, ...], NoDecode, BeforeValidator(split_at_commas)]
Hosts = Annotated[tuple[str, ...], NoDecode, BeforeValidator(lambda hosts: split_at_commas(in_lower_case(hosts)))]
Forks = Annotated[Mapping[str, str], NoDecode, BeforeValidator(_split_forks)]
TeamRepositories = Annotated[Mapping[str, str], NoDecode, BeforeValidator(_split_teams("REPOSITORY"))]
TeamAgents = Annotated[Mapping[str, str], NoDecode, BeforeValidator(_split_teams("AGENT"))]
WebAddress = Annotated[str, AfterValidator(_check_address)]
SecretWebAddress = Annotated[
    SecretStr, AfterValidator(lambda url: SecretStr(_check_address(url.get_secret_value())))
]
