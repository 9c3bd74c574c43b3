"""Read the environment variables of `septet.environment_variables`; no other module reads the environment."""

import os
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Final

from pydantic import Field, ValidationError, model_validator

from septet.contracts.names import SandboxChoice
from septet.contracts.repository import DEFAULT_PREFIX, BranchPrefix
from septet.contracts.wording import reason_of
from septet.environment_variables import SettingFields
from septet.errors import InvalidInputError
from septet.setting_values import split_logins
from septet.system.keys import key_values
from septet.system.masking import hide

_FOR_EVERY_PROCESS: Final = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "TMPDIR", "TERM")
_FOR_NETWORK: Final = (
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
)
_FOR_GIT: Final = ("SSH_AUTH_SOCK", "GIT_SSH_COMMAND", "GIT_SSL_CAINFO")
_FOR_LOGINS: Final = ("XDG_CONFIG_HOME", "GH_CONFIG_DIR", "GLAB_CONFIG_DIR", "DBUS_SESSION_BUS_ADDRESS")
MIB: Final = 1024 * 1024


class Settings(SettingFields):
    """The settings of a worker or a client, from its environment."""

    branch_prefix: BranchPrefix = Field(
        default_factory=lambda: "" if os.environ.get("SEPTET_BRANCH_PREFIX") == "" else DEFAULT_PREFIX
    )
    """The prefix of the branches of work orders, if a repository's settings name no prefix; empty: agents choose
    the whole names."""
    environ: Mapping[str, str] = Field(default_factory=lambda: dict(os.environ), repr=False, exclude=True)
    """The whole environment; each kind of process gets only the variables that it may have."""

    @model_validator(mode="after")
    def _is_consistent(self) -> "Settings":
        if (self.github_app_id is None) != (self.github_app_key_file is None):
            raise ValueError("Set both SEPTET_GITHUB_APP_ID and SEPTET_GITHUB_APP_KEY_FILE, or neither")
        if self.seal_keys_file is not None and self.seal_keys_command is not None:
            message = "SEPTET_SEAL_KEYS_FILE and SEPTET_SEAL_KEYS_COMMAND are both set, and one of them is enough"
            raise ValueError(message)
        if self.seal_required and not self.seals:
            raise ValueError("SEPTET_SEAL_REQUIRED needs SEPTET_SEAL_KEYS_FILE or SEPTET_SEAL_KEYS_COMMAND")
        _ = self.agent_logins
        if self.notify_url is not None and self.notify_secret is None:
            raise ValueError("SEPTET_NOTIFY_URL needs SEPTET_NOTIFY_SECRET, which signs what is sent there")
        return self

    @property
    def seals(self) -> bool:
        """Whether texts for Temporal are sealed."""
        return self.seal_keys_file is not None or self.seal_keys_command is not None

    @property
    def file_limit_bytes(self) -> int:
        """The most bytes of a file that may be committed, pushed or kept in a snapshot; 0: no limit."""
        return self.file_limit_mib * MIB

    @property
    def ignored_limit_bytes(self) -> int:
        """The most bytes of all ignored files in a snapshot."""
        return self.ignored_limit_mib * MIB

    @property
    def guest_resources(self) -> dict[str, int]:
        """The limits of one agent or check in the sandbox, by the fields of `Limits`; 0: no limit.

        Without a memory limit, the supervisor derives one from its machine or container.
        """
        memory = {} if self.memory_limit_mib is None else {"memory_bytes": self.memory_limit_mib * MIB}
        return memory | {
            "processes": self.process_limit,
            "disk_bytes": self.disk_limit_mib * MIB,
            "tree_entries": self.tree_limit,
            "tree_bytes": self.tree_limit_mib * MIB,
            "output_bytes": self.output_limit_mib * MIB,
        }

    @property
    def home(self) -> Path:
        """The home of the current user."""
        return Path(self.environ.get("HOME") or Path.home())

    @cached_property
    def git_env(self) -> dict[str, str]:
        """The environment for Septet's git, which reads only Septet's own configuration."""
        variables = self._variables(*_FOR_EVERY_PROCESS, *_FOR_NETWORK, *_FOR_GIT)
        return {**variables, "GIT_CONFIG_GLOBAL": str(self.git_configuration), "GIT_CONFIG_NOSYSTEM": "1"}

    @property
    def git_configuration(self) -> Path:
        """The path of the configuration of Septet's git, which `write_configuration` writes."""
        return self.state_dir / "gitconfig"

    @property
    def user_git_env(self) -> dict[str, str]:
        """The environment for a git that reads the configurations of user and machine."""
        return self._variables(*_FOR_EVERY_PROCESS, "GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM", "XDG_CONFIG_HOME")

    @property
    def server_env(self) -> dict[str, str]:
        """The environment of the embedded server, without keys, because other processes can read it."""
        return self._variables(*_FOR_EVERY_PROCESS)

    @property
    def webhook_secrets(self) -> dict[str, str]:
        """The secrets that sign webhooks, by forge; a forge without a secret is missing."""
        secrets = {
            "github": self.github_webhook_secret,
            "gitlab": self.gitlab_webhook_secret,
            "gitea": self.gitea_webhook_secret,
            "linear": self.linear_webhook_secret,
        }
        return {name: secret.get_secret_value() for name, secret in secrets.items() if secret is not None}

    @property
    def forge_login_env(self) -> dict[str, str]:
        """The environment variables with which `gh` and `glab` find their logins."""
        return self._variables(*_FOR_EVERY_PROCESS, *_FOR_LOGINS)

    @cached_property
    def agent_programs(self) -> dict[str, str]:
        """The path of each agent's program, by agent, from `SEPTET_<AGENT>_PATH`."""
        names = (name for name in self.environ if name.startswith("SEPTET_") and name.endswith("_PATH"))
        return {name[7:-5].lower().replace("_", "-"): self.environ[name] for name in names}

    @property
    def agent_logins(self) -> dict[str, dict[str, Path]]:
        """The further logins of each agent, by agent and name, in the order of `SEPTET_<AGENT>_LOGINS`.

        Raises:
            ValueError: A login is not `NAME=PATH`, or two logins have the same name.
        """
        names = (name for name in self.environ if name.startswith("SEPTET_") and name.endswith("_LOGINS"))
        texts = {name: self.environ[name] for name in names if name != "SEPTET_FORGE_LOGINS"}
        return {name[7:-7].lower().replace("_", "-"): split_logins(name, text) for name, text in texts.items()}

    def _variables(self, *names: str) -> dict[str, str]:
        return {name: self.environ[name] for name in names if name in self.environ}


def load_settings(sandbox: SandboxChoice | None = None) -> Settings:
    """Return the settings, with `sandbox` in place of `SEPTET_SANDBOX`, and mask their keys in texts from now on.

    Raises:
        InvalidInputError: A variable is not valid; the message names the variable.
    """
    try:
        own = Settings()
        hide(key_values(own.environ))
        return own if sandbox is None else own.model_copy(update={"sandbox": sandbox})
    except ValidationError as error:
        first = error.errors()[0]
        if not first["loc"]:
            raise InvalidInputError(f"{first['ctx']['error']!s}.") from error
        name = str(first["loc"][0]).upper().removeprefix("SEPTET_")
        remedy = f"Correct SEPTET_{name}, and start again."
        raise InvalidInputError(f"SEPTET_{name} is not valid: it {reason_of(first)}.", remedy=remedy) from error
