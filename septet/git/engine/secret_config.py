"""Settings that hold a key, for one git and its children: in memory, behind a descriptor that they inherit."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

_COUNT: Final = "GIT_CONFIG_COUNT"


@dataclass(frozen=True, slots=True)
class SecretConfig:
    """How a git process is told of them."""

    path: str = ""
    """What it includes, as it sees it; empty where there is nothing to tell, or the environment tells it."""
    descriptors: tuple[int, ...] = ()
    """What it inherits."""
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Where a system has no files in memory: then other processes of the same user can read it there."""


@contextmanager
def open_secret_config(settings: Mapping[str, str]) -> Iterator[SecretConfig]:
    """Have settings, by their full names, ready for the git that is started in the block.

    Raises:
        OSError: There is no memory, or no descriptor, for it.
    """
    if not settings:
        yield SecretConfig()
        return
    if not hasattr(os, "memfd_create"):
        yield SecretConfig(env=_as_environment(settings))
        return
    descriptor = os.memfd_create("git-settings", os.MFD_CLOEXEC)
    try:
        os.fchmod(descriptor, 0o400)
        with os.fdopen(descriptor, "wb", closefd=False) as file:
            file.write("".join(map(_as_lines, settings.items())).encode())
        # Each process opens it anew, and so reads it from its beginning.
        yield SecretConfig(f"/proc/self/fd/{descriptor}", (descriptor,))
    finally:
        os.close(descriptor)


def _as_lines(setting: tuple[str, str]) -> str:
    """Return a setting as git's files have it: `http.https://host/.extraHeader` is in a section of the address."""
    name, value = setting
    section, _, rest = name.partition(".")
    part, _, key = rest.rpartition(".")
    heading = f'[{section} "{_escaped(part)}"]' if part else f"[{section}]"
    return f'{heading}\n\t{key} = "{_escaped(value)}"\n'


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _as_environment(settings: Mapping[str, str]) -> dict[str, str]:
    variables = {_COUNT: str(len(settings))}
    for number, (name, value) in enumerate(settings.items()):
        variables |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return variables
