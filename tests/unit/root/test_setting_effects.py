"""Every setting changes the behaviour of the code that reads it."""

import ast
import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
from pydantic import SecretStr
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from activities.board.pull_requests import PullRequestActivities
from activities.host.host import Host
from activities.turns.budget_openings import openings_of
from activities.workspaces.sweep_host import terms_of
from activities.workspaces.workspaces import Choices
from clients.api_token import api_token
from septet.agents.clis.adapter import Turn
from septet.agents.clis.registry import adapter_for
from septet.agents.guest.named_paths import parse_named_paths
from septet.agents.guest.network import parse_hosts, parse_way_out
from septet.agents.sandbox.sandbox import find_sandbox
from septet.agents.sandbox.supervisors import Supervisors
from septet.contracts.names import Step
from septet.contracts.pull_request import PullRequestLook
from septet.contracts.rework import Rework
from septet.contracts.steps import StepCall
from septet.contracts.workspace import OpenWorkspace, Workspace
from septet.errors import SeptetError
from septet.forges.choose import forge_for, fork_for
from septet.git.engine.address import parse_address
from septet.repository_settings import RepositorySettings
from septet.settings import Settings
from septet.state import StateDir
from septet.trackers.choose import agent_of, repository_of, tracker_for
from septet.trackers.tracker import TrackerIssue
from workers.builds.build_id import build_id
from workers.builds.versions import deployment_config
from workers.connection.payload_codec import codec_of
from workers.observing.activity_observer import activity_observer
from workers.observing.observers import observers
from workers.slots import agents_at_once, workflow_cache
from workers.watching.board import capacity_of

ROOT: Final = Path(__file__).parents[3]
ENTERPRISE: Final = parse_address("https://ghe.example/o/r", home=Path("/home/ada"))
GITHUB: Final = parse_address("https://github.com/o/r", home=Path("/home/ada"))
GITLAB: Final = parse_address("https://gitlab.com/o/r", home=Path("/home/ada"))
CODEBERG: Final = parse_address("https://codeberg.org/o/r", home=Path("/home/ada"))
ENG_12: Final = TrackerIssue("id", "ENG-12", "Totals are wrong", "", "https://linear.app/o/issue/ENG-12", "ENG")
_PROGRAM: Final = """
import logging
import structlog
from septet.settings import load_settings
from workers.observing.logs import set_up_logs
set_up_logs(load_settings())
structlog.get_logger().info("something_happened")
print(load_settings().user)
"""


def host(settings: Settings) -> Host:
    """Return a host with the settings; no part of the host runs."""
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


def started_as_root(settings: Settings) -> object:
    """Return claude's arguments for a start as root."""
    machine = replace(host(settings).agents, uid=0)
    return adapter_for("claude").arguments(Turn(prompt="", worktree=Path("/")), machine)


def accounts_of(settings: Settings) -> object:
    """Return the budget accounts of a turn, in the form in which a worker would open them."""
    workspace = Workspace(
        work_order_id="wo-1", host="h", task_queue="q", repository="/app", forge="local", project="app",
        base_branch="main", base_sha="", path="/", agent="claude",
    )  # fmt: skip
    step = StepCall(step=Step.BUILD_PLAN, workspace=workspace)
    round_ = step.model_copy(update={"rework": Rework(round=1, url="https://github.com/o/r/pull/1")})
    return [openings_of(settings, call, RepositorySettings()) for call in (step, round_)]


def printed(settings: Settings) -> object:
    """Return the output of a process whose environment has the settings that are not defaults."""
    values = {name: getattr(settings, name) for name in ("user", "log_level", "log_format")}
    environ = {
        f"SEPTET_{name.upper()}": value for name, value in values.items() if name in settings.model_fields_set
    }
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM],
        env={"PATH": os.environ["PATH"], "HOME": "/nowhere", "LOGNAME": "ada", **environ},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return done.stdout, "something_happened" in done.stderr, done.stderr.startswith("{")


EFFECTS: Final[Mapping[str, tuple[object, Callable[[Settings], object]]]] = {
    "state_dir": ("/var/lib/septet", lambda settings: host(settings).state.runs),
    "user": ("eve", printed),
    "task_queue": ("mine", lambda settings: host(settings).task_queue),
    "versioning": (False, lambda settings: deployment_config(settings) is None),
    "build_id": ("mine", build_id),
    "github_token": ("t", lambda settings: host(settings).forges.token(GITHUB)),
    "github_hosts": (("ghe.example",), lambda settings: forge_for(ENTERPRISE, settings).name),
    "github_api_url": ("https://api", lambda settings: forge_for(GITHUB, settings)),
    "github_webhook_secret": (SecretStr("s"), lambda settings: settings.webhook_secrets),
    "gitlab_webhook_secret": (SecretStr("s"), lambda settings: settings.webhook_secrets),
    "gitea_webhook_secret": (SecretStr("s"), lambda settings: settings.webhook_secrets),
    "linear_webhook_secret": (SecretStr("s"), lambda settings: settings.webhook_secrets),
    "linear_token": (SecretStr("t"), lambda settings: tracker_for("linear", settings)),
    "linear_api_url": (
        "https://api",
        lambda settings: tracker_for("linear", settings.model_copy(update={"linear_token": SecretStr("t")})),
    ),
    "linear_repositories": ({"eng": "/o/r"}, lambda settings: repository_of(ENG_12, settings)),
    "linear_agents": ({"eng": "codex"}, lambda settings: agent_of(ENG_12, settings)),
    "gitlab_token": ("t", lambda settings: host(settings).forges.token(GITLAB)),
    "gitlab_hosts": (("gitlab.com", "ghe.example"), lambda settings: forge_for(ENTERPRISE, settings).name),
    "gitlab_api_url": ("https://api", lambda settings: forge_for(GITLAB, settings)),
    "gitea_token": ("t", lambda settings: host(settings).forges.token(CODEBERG)),
    "gitea_hosts": (("ghe.example",), lambda settings: forge_for(ENTERPRISE, settings).name),
    "gitea_api_url": ("https://api", lambda settings: forge_for(CODEBERG, settings)),
    "forks": ({"github.com/o/r": "me/r"}, lambda settings: fork_for(GITHUB, settings)),
    "ignored_limit_mib": (
        1,
        lambda settings: host(settings).snapshots.options("a test").ignored_limit_bytes,
    ),
    "orphan_limit_seconds": (9.0, lambda settings: host(settings).runtime.orphan_limit_seconds),
    "checkpoint_remote": ("origin", lambda settings: host(settings).whereabouts["kept"]),
    "probe_seconds": (9.0, lambda settings: host(settings).whereabouts["probe_seconds"]),
    "max_agents": (7, agents_at_once),
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
    "sessions": (
        "shared",
        lambda settings: (
            Choices(OpenWorkspace(work_order_id="wo-1", repository="/r"), RepositorySettings(), settings).sessions
        ),
    ),
    "sandbox": ("none", lambda settings: find_sandbox(settings.sandbox, {"PATH": "/nowhere"}).reason),
    "guest_paths": (("/opt/tools",), lambda settings: parse_named_paths(settings.guest_paths, settings.home)),
    "setup_hosts": (("packages.example.com:443",), lambda settings: parse_hosts(settings.setup_hosts)),
    "guest_hosts": (("packages.example.com:443",), lambda settings: parse_hosts(settings.guest_hosts)),
    "model_requests": (("GET /v1/x",), lambda settings: parse_way_out((), "proxy", {}, settings.model_requests)),
    "guest_network": ("open", lambda settings: parse_way_out((), settings.guest_network, {})),
    "process_limit": (9, lambda settings: host(settings).runtime.resources),
    "memory_limit_mib": (9, lambda settings: host(settings).runtime.resources),
    "disk_limit_mib": (9, lambda settings: host(settings).runtime.resources),
    "tree_limit": (9, lambda settings: host(settings).runtime.resources),
    "tree_limit_mib": (9, lambda settings: host(settings).runtime.resources),
    "file_limit_mib": (9, lambda settings: settings.file_limit_bytes),
    "output_limit_mib": (9, lambda settings: host(settings).runtime.resources),
    "runner": (True, lambda settings: host(settings).runs.runner),
    "sandboxed": (True, started_as_root),
    "api_token": ("none", api_token),
    "metrics": ("127.0.0.1:9464", lambda settings: len(activity_observer(settings).listeners)),
    "traces": ("http://127.0.0.1:9", lambda settings: len(observers(settings))),
    "drain": (True, lambda settings: capacity_of(settings, "h").host_limit),
    "seal_keys_file": (Path("/no/such/keys"), codec_of),
    "seal_keys_command": ("/no/such/program", codec_of),
    "log_level": ("error", printed),
    "log_format": ("console", printed),
}
"""By setting: another value than the default, and the result that changes, without a server or an agent."""

TRIED_BY: Final[Mapping[str, str]] = {
    "unit/forges/test_conversation.py::test_the_words_of_an_app_count_where_it_is_named": "trusted_accounts",
    "unit/forges/test_issue_requests.py::test_a_writers_edit_counts": "on_unknown_edits",
    "acceptance/test_linear.py::site": "linear_approve_plan",
    "activities/test_classify_issue.py::test_agent_and_model_of_the_settings_serve_where_none_are_named":
        "agent model",
    "activities/test_generate_branch.py::test_a_worker_may_leave_whole_names_to_agents": "branch_prefix",
    "activities/test_further_logins.py::test_a_second_agent_is_chosen_by_work_order_repository_and_worker":
        "fallback_agent",
    "activities/test_disk.py::on_small_disk": "disk_wait_seconds",
    "activities/test_size_limits.py::small": "answer_limit_kib",
    "acceptance/test_notifications.py::test_an_address_is_told_what_people_should_know": "notify_url",
    "acceptance/test_notifications.py::test_an_address_without_a_secret_is_refused": "notify_secret",
    "activities/test_hosts.py::test_the_finalizer_goes_on_with_the_session_on_the_other_host": "checkpoint_key",
    "acceptance/test_sealed.py::test_a_named_site_has_payloads_opened_and_no_other": "codec_origins",
    "acceptance/test_sealed.py::test_nobody_without_a_key_starts_anything": "seal_required",
    "activities/test_protected_paths.py::test_the_worker_chooses_where_the_repository_does_not":
        "protected on_protected",
    "activities/test_read_outgoing.py::lab": "read_outgoing",
    "activities/test_outgoing.py::test_commits_are_signed_off_where_a_setting_asks_for_it": "sign_off",
    "activities/test_create_commit.py::test_commits_are_signed_where_the_setting_says_so": "sign_commits",
    "unit/forges/test_keys_of_forges.py::test_an_app_serves_api_and_git_with_one_token":
        "github_app_id github_app_key_file",
    "unit/forges/test_keys_of_forges.py::test_a_login_that_is_named_serves": "forge_logins",
    "acceptance/test_options.py::test_links_of_the_page_lead_to_the_web_ui_of_the_setting": "temporal_ui_url",
}  # fmt: skip
"""By test: the settings whose effect on agents, git or servers the test checks."""


def outcome(effect: Callable[[Settings], object], settings: Settings) -> object:
    """Return the result of the settings, or the message of a refusal."""
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


@pytest.mark.parametrize("test", TRIED_BY)
def test_the_test_that_tries_a_setting_is_there(test: str) -> None:
    """The named test exists and uses the setting."""
    path, _, function = test.partition("::")
    source = (ROOT / "tests" / path).read_text(encoding="utf-8")
    named = [each for each in ast.walk(ast.parse(source)) if getattr(each, "name", "") == function]
    words = {node.value for each in named for node in ast.walk(each) if isinstance(node, ast.Constant)}
    words |= {node.arg for each in named for node in ast.walk(each) if isinstance(node, ast.keyword)}
    assert all({name, f"SEPTET_{name.upper()}"} & words for name in TRIED_BY[test].split())


def test_every_setting_has_an_effect_that_is_tried() -> None:
    """Every setting has an effect or a test here, so that a new setting needs one."""
    assert sorted([*EFFECTS, *" ".join(TRIED_BY.values()).split()]) == sorted(
        set(Settings.model_fields) - {"environ"}
    )
