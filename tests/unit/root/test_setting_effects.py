"""Settings that no other test tries change the behaviour of the code that reads them."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
from fakes.opened_workspace import WORKSPACE
from pydantic import SecretStr
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from activities.board.pull_requests import PullRequestActivities
from activities.host.host import Host
from activities.workspaces.hosts import terms_of
from septet.agents.guest.network import parse_way_out
from septet.agents.sandbox.supervisors import Supervisors
from septet.contracts.names import Step
from septet.contracts.pull_request_watch import PullRequestLook
from septet.contracts.rework import Rework
from septet.contracts.steps import StepCall
from septet.errors import SeptetError
from septet.forges.choose import forge_for
from septet.git.engine.address import parse_address
from septet.repository_settings import RepositorySettings, openings_of
from septet.settings import Settings
from septet.state import StateDir
from workers.builds.versions import deployment_config
from workers.connection.payload_codec import codec_of
from workers.slots import workflow_cache
from workers.watching.reports import capacity_of

ENTERPRISE: Final = parse_address("https://ghe.example/o/r", home=Path("/home/ada"))
GITHUB: Final = parse_address("https://github.com/o/r", home=Path("/home/ada"))
GITLAB: Final = parse_address("https://gitlab.com/o/r", home=Path("/home/ada"))
CODEBERG: Final = parse_address("https://codeberg.org/o/r", home=Path("/home/ada"))


def host(settings: Settings) -> Host:
    return Host("h", settings, StateDir(settings.state_dir), Supervisors())


def pause(settings: Settings, url: str) -> object:
    """Return the pause until the next poll of a pull request with an unreachable forge or a wrong address."""
    environment = ActivityEnvironment()
    environment.info = replace(ActivityEnvironment.default_info(), attempt=1)
    away = settings.model_copy(update={"github_api_url": "http://127.0.0.1:1"})
    look = PullRequestLook(repository=GITHUB.url, url=url)
    with pytest.raises(ApplicationError) as refused:
        asyncio.run(environment.run(PullRequestActivities(host(away)).look_at_pull_request, look))
    return refused.value.next_retry_delay


def accounts_of(settings: Settings) -> object:
    """Return the budget accounts of a turn, in the form in which a worker would open them."""
    step = StepCall(step=Step.BUILD_PLAN, workspace=WORKSPACE)
    round_ = step.model_copy(update={"rework": Rework(round=1, url="https://github.com/o/r/pull/1")})
    return [openings_of(settings, call, RepositorySettings()) for call in (step, round_)]


EFFECTS: Final[Mapping[str, tuple[object, Callable[[Settings], object]]]] = {
    "versioning": (False, lambda settings: deployment_config(settings) is None),
    "github_webhook_secret": (SecretStr("s"), lambda settings: settings.webhook_secrets),
    "gitlab_webhook_secret": (SecretStr("s"), lambda settings: settings.webhook_secrets),
    "gitea_webhook_secret": (SecretStr("s"), lambda settings: settings.webhook_secrets),
    "linear_webhook_secret": (SecretStr("s"), lambda settings: settings.webhook_secrets),
    "gitlab_api_url": ("https://api", lambda settings: forge_for(GITLAB, settings)),
    "gitea_token": ("t", lambda settings: host(settings).forges.token(CODEBERG)),
    "gitea_hosts": (("ghe.example",), lambda settings: forge_for(ENTERPRISE, settings).name),
    "gitea_api_url": ("https://api", lambda settings: forge_for(CODEBERG, settings)),
    "orphan_limit_seconds": (9.0, lambda settings: host(settings).runtime.orphan_limit_seconds),
    "probe_seconds": (9.0, lambda settings: host(settings).whereabouts["probe_seconds"]),
    "cached_workflows": (50, workflow_cache),
    "project_limit": (7, lambda settings: capacity_of(settings, "h")),
    "order_budget": ("5usd", accounts_of),
    "project_budget": ("5usd", accounts_of),
    "day_budget": ("5usd", accounts_of),
    "follow_budget": ("5usd", accounts_of),
    "host_limit": (7, lambda settings: capacity_of(settings, "h")),
    "look_seconds": (9.0, lambda settings: pause(settings, f"{GITHUB.url}/pull/1")),
    "longest_look_seconds": (9.0, lambda settings: pause(settings, "no address")),
    "keep_workspaces_days": (1.0, terms_of),
    "keep_runs_days": (1.0, terms_of),
    "keep_snapshots_days": (1.0, terms_of),
    "keep_mirrors_days": (1.0, terms_of),
    "keep_forgotten_days": (1.0, terms_of),
    "drop_ignored_files": (True, terms_of),
    "warm_agents": (False, lambda settings: host(settings).keeps_process("claude")),
    "model_requests": (("GET /v1/x",), lambda settings: parse_way_out((), "proxy", {}, settings.model_requests)),
    "guest_network": ("open", lambda settings: parse_way_out((), settings.guest_network, {})),
    "process_limit": (9, lambda settings: host(settings).runtime.resources),
    "memory_limit_mib": (9, lambda settings: host(settings).runtime.resources),
    "disk_limit_mib": (9, lambda settings: host(settings).runtime.resources),
    "tree_limit": (9, lambda settings: host(settings).runtime.resources),
    "tree_limit_mib": (9, lambda settings: host(settings).runtime.resources),
    "file_limit_mib": (9, lambda settings: settings.file_limit_bytes),
    "output_limit_mib": (9, lambda settings: host(settings).runtime.resources),
    "seal_keys_file": (Path("/no/such/keys"), codec_of),
    "seal_keys_command": ("/no/such/program", codec_of),
}
"""By setting: another value than the default, and the result that changes, without a server or an agent."""


def outcome(effect: Callable[[Settings], object], settings: Settings) -> object:
    try:
        return effect(settings)
    except SeptetError as refusal:
        return refusal.message


@pytest.mark.parametrize("name", EFFECTS)
def test_a_setting_changes_what_is_done(name: str, tmp_path: Path) -> None:
    """Another value than the default changes the result of the same code."""
    value, effect = EFFECTS[name]
    usual: dict[str, Any] = {"state_dir": tmp_path, "environ": {}}
    without, given = Settings(**usual), Settings(**usual | {name: value})
    assert outcome(effect, given) != outcome(effect, without)
