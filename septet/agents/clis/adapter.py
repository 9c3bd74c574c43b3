"""What every adapter of a CLI gives: how it is started for a turn, and how its stream is read."""

import os
import re
import shutil
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Protocol

from septet.agents.clis.capabilities import Capabilities
from septet.agents.clis.model_place import ModelPlace
from septet.agents.outcomes.outcome import NO_USAGE, ExitRecord, Outcome, StreamProgress
from septet.agents.outcomes.transcript import Transcript
from septet.contracts.facts import Usage
from septet.contracts.limits import Tools
from septet.errors import AgentMissingError
from septet.system.keys import is_key

FOR_EVERY_AGENT: Final = (
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_*", "TZ", "TMPDIR", "TERM", "XDG_*",
    "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS",
    "RUSTUP_HOME", "PYENV_ROOT", "RBENV_ROOT", "NODENV_ROOT", "NVM_DIR", "FNM_DIR", "VOLTA_HOME", "ASDF_DATA_DIR",
    "MISE_DATA_DIR", "SDKMAN_DIR",
)  # fmt: skip
"""The variables that any agent gets; a name that ends with `*` is a prefix. No forge's key is among them.

The last ones say where toolchains lie: guests see those that `guest/toolchains.py` knows."""

_ACCOUNT_OF_PROXY: Final = re.compile(r"^((?:[A-Za-z][A-Za-z0-9+.-]*://)?)[^/?#]*@")


@dataclass(frozen=True, slots=True)
class Turn:
    """The prompt and options of one agent start."""

    prompt: str
    worktree: Path
    """Where it works."""
    session_id: str | None = None
    """The id for a new session, a UUID; for CLIs that take one."""
    resume_id: str | None = None
    """The session to continue."""
    for_new_session: str = ""
    """The text after the prompt of a new session; a resumed session knows it."""
    about_session: bool = False
    """The prompt is about that session's work: in a new session it would mean nothing."""
    schema: Mapping[str, Any] | None = None
    """The JSON Schema of the answer, for CLIs that take one."""
    tools: Tools = "all"
    model: str | None = None
    """The CLI's own default when absent."""
    max_turns: int | None = None
    max_usd: float | None = None
    """Where it is to end by itself, for CLIs that know what they cost."""
    warm: bool = False
    """Leave the process running for the next turn of this workspace, where the CLI can; else it means nothing."""


@dataclass(frozen=True, slots=True)
class Invocation:
    """How a program is started."""

    argv: tuple[str, ...]
    """Holds no secret and not the prompt: everyone on the machine can read it."""
    env: Mapping[str, str] = field(repr=False)
    """The whole environment."""
    stdin: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Machine:
    """What a worker says of the machine that its agents run on."""

    env: Mapping[str, str] = field(repr=False)
    """The worker's environment, of which agents get what an allow-list names."""
    programs: Mapping[str, str] = field(default_factory=dict)
    """By agent: the path that `SEPTET_<AGENT>_PATH` gives."""
    sandboxed: bool = False
    """It is a container or another sandbox."""
    uid: int = field(default_factory=os.getuid)


class Dialect(Protocol):
    """One run's stream as it grows."""

    def feed(self, chunk: bytes) -> None:
        """Read the next bytes, cut anywhere."""

    @property
    def progress(self) -> StreamProgress:
        """What the stream has said so far."""

    def outcome(self, end: ExitRecord, stderr: str) -> Outcome:
        """Return what the run came to, once its stream is over."""


@dataclass(frozen=True, slots=True)
class Adapter(ABC):
    """One CLI."""

    name: str
    """The agent's name."""
    capabilities: Capabilities
    """What the CLI can do for the engine beside its work."""
    new_dialect: Callable[[], Dialect]
    transcript: Callable[[], Transcript]
    """Gives a reader of a stream for people."""
    program: str
    """What is looked for on PATH."""
    login: tuple[str, ...] = ()
    """Variables that the CLI logs in with; a name that ends with `*` is a prefix."""
    quiet: Mapping[str, str] = field(default_factory=dict)
    """Variables that the engine sets: no telemetry, no updates, few retries."""

    @abstractmethod
    def arguments(self, turn: Turn, host: Machine) -> Sequence[str]:
        """Return what follows the program on the command line of `turn`.

        Raises:
            AgentError: The CLI cannot work on this host; the remedy says what to change.
        """

    def environment(self, turn: Turn, host: Machine) -> dict[str, str]:
        """Return the whole environment of `turn`.

        Raises:
            AgentError: A variable of the worker's cannot be used; the remedy says what to change.
        """
        del turn
        return {**select_variables(host.env, (*FOR_EVERY_AGENT, *self.login)), **self.quiet}

    def invocation(self, turn: Turn, host: Machine) -> Invocation:
        """Return how the CLI is started for `turn`: the prompt on stdin, for an argv has a bound.

        Raises:
            AgentMissingError: Its program was not found.
            AgentError: It cannot work on this host; the remedy says what to change.
        """
        program = find_program(self.name, self.program, host)
        arguments, env = self.arguments(turn, host), self.environment(turn, host)
        return Invocation((program, *arguments), env, encode_prompt(turn.prompt))

    def provider_of(self, host: Machine, model: str | None) -> str:
        """Return whose model a CLI asks that knows several providers; empty where nobody says or there is one."""
        del host, model
        return ""

    def keys_of(self, host: Machine, provider: str) -> dict[str, str]:
        """Return the keys with which the CLI asks a provider, by variable; empty where it logs in otherwise.

        Args:
            host: The machine that it finds them on.
            provider: As `provider_of` names it: all keys count where it is empty.
        """
        del provider
        env = select_variables(host.env, self.login)
        return {name: key for name, key in env.items() if key and is_key(name, key)}

    def model_places(self, invocation: Invocation, host: Machine) -> tuple[ModelPlace, ...]:
        """Return the model addresses and keys of an invocation, as far as they can be replaced.

        An address is empty where it is left to the CLI, and a key where there is none.
        """
        del host
        env = invocation.env
        return tuple(
            ModelPlace(
                each.address,
                env.get(each.address) or each.usual_address,
                {name: env.get(name, "") for name in each.keys},
                each.requests,
            )
            for each in self.capabilities.model_variables
        )

    def asked_hosts(self, invocation: Invocation, host: Machine) -> Collection[str]:
        """Return the hosts that an invocation asks by itself, with a login that a guest has.

        None where the key of its model stays outside: then it asks at a port of its own.
        """
        kept = any(place.is_kept for place in self.model_places(invocation, host))
        return () if kept else self.capabilities.model_hosts

    def named_addresses(self, invocation: Invocation, host: Machine) -> Sequence[str] | None:
        """Return texts with the addresses of the models that it asks, as the worker's settings name them.

        `None` for all that stand in the CLI's settings, and in the variables that this CLI alone gets.
        """
        del invocation, host
        return None

    def move_models(self, invocation: Invocation, places: Sequence[ModelPlace]) -> Invocation:
        """Return an invocation that asks at other addresses, with other keys.

        Args:
            invocation: How it is started where nothing is moved.
            places: Some of its places, by their names, with the addresses and keys that they have now.
        """
        env = dict(invocation.env)
        for place in places:
            env[place.name] = place.address
            env |= {name: key for name, key in place.keys.items() if env.get(name)}
        return replace(invocation, env=env)

    def dialect(self, before: Usage = NO_USAGE) -> Dialect:
        """Return the reader of a new stream; `before` is what its session used in the runs before this one.

        Most CLIs give the figures of the run alone, and need it not.
        """
        del before
        return self.new_dialect()


def option(name: str, value: str | None) -> tuple[str, ...]:
    """Return an option of a command line, or nothing where it has no value."""
    return () if value is None else (name, value)


def find_program(agent: str, program: str, host: Machine) -> str:
    """Return the path of an agent's program: `SEPTET_<AGENT>_PATH`, on PATH, or beside this Python.

    Raises:
        AgentMissingError: It is nowhere.
    """
    variable = f"SEPTET_{agent.upper().replace('-', '_')}_PATH"
    configured = host.programs.get(agent)
    if configured:
        path = shutil.which(Path(configured).expanduser())
        if path is None:
            raise AgentMissingError(
                f"{variable} names {configured}, which is not an executable program.",
                remedy=f"Start the worker (`septet up`) again with {variable} corrected, or without it and with "
                f"`{program}` on PATH.",
            )
        return str(Path(path).absolute())
    places = (host.env.get("PATH", os.defpath), str(Path(sys.executable).parent))
    path = shutil.which(program, path=os.pathsep.join(places))
    if path is None:
        raise AgentMissingError(
            f"The program `{program}` of the agent {agent} is not on PATH.",
            remedy=f"Install it where the worker (`septet up`) runs, or restart that with its path in {variable}.",
        )
    return str(Path(path).absolute())


def own_variables(env: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that not every agent gets."""
    usual = select_variables(env, FOR_EVERY_AGENT)
    return {name: value for name, value in env.items() if name not in usual}


def select_variables(env: Mapping[str, str], names: Collection[str]) -> dict[str, str]:
    """Return the variables that `names` allows; a name that ends with `*` is a prefix.

    Addresses of proxies lose their passwords: those are the worker's.
    """
    exact = {name for name in names if not name.endswith("*")}
    prefixes = tuple(name[:-1] for name in names if name.endswith("*"))
    return {
        name: _ACCOUNT_OF_PROXY.sub(r"\1", value) if name.lower().endswith("_proxy") else value
        for name, value in env.items()
        if name in exact or (prefixes and name.startswith(prefixes))
    }


def encode_prompt(prompt: str) -> bytes:
    """Return the prompt so that its first word is no command of the CLI's own (`/init` would be carried out)."""
    text = f"Your task:\n\n{prompt}" if prompt.lstrip().startswith("/") else prompt
    return text.encode("utf-8", errors="replace")
