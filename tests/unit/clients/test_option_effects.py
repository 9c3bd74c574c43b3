"""Each option beyond an input's has an effect: on a request to the server, or in a named test."""

import ast
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
from fakes.command_lines import leaves, options_of

from clients.cli.commands import load
from clients.cli.options import Server
from clients.cli.parsing.command_line import parse

ROOT: Final = Path(__file__).parents[3]
PLAN: Final = "0" * 64
LINES: Final[Mapping[str, tuple[str, ...]]] = {
    "run": ("--repo", "/app.git", "--title", "T"), "create": ("--repo", "/app.git", "--title", "T"),
    "board": (), "list": (), "costs": (), "move": ("wo-1", "triaged"), "approve": ("wo-1",), "reject": ("wo-1", "--feedback", "No."),
    "cancel": ("wo-1",), "budget set": ("wo-1", "5usd"), "budget raise": ("wo-1", "5usd"), "retry": ("wo-1",), "pipeline": ("--repo", "/app.git", "--issues", "7"), "pipeline list": (), "budget list": (),
    "pipeline pause": ("pl-1",), "pipeline resume": ("pl-1",), "pipeline stop": ("pl-1",),
    "pipeline cancel": ("pl-1",), "pipeline skip": ("pl-1", "7"), "pipeline replan": ("pl-1", "7"),
}  # fmt: skip
"""A command line of each command that calls the server, without the options below."""
ASKED: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "--id": ("mine", ("run", "create")),
    "--again": ("", ("run", "create")),
    "--why": ("because", tuple(name for name in LINES if name.rpartition(" ")[2] in {
        "move", "approve", "reject", "cancel", "retry", "pause", "resume", "stop", "skip", "replan"})),
    "--feedback": ("Better.", ("move", "reject", "retry")),
    "--step": ("build_plan", ("budget set", "budget raise")),
    "--expected": ("5usd", ("budget raise",)),
    "--plan": (PLAN, ("approve", "reject")),
    "--finding": ("0" * 12, ("approve",)),
    "--from": ("build_plan", ("retry",)),
    "--project": ("o/r", ("board", "costs")),
    "--after": ("there", ("board", "list", "pipeline list", "budget list")),
    "--limit": ("3", ("board", "list", "pipeline list", "budget list")),
    "--state": ("open", ("list",)),
    "--agent": ("codex", ("list",)),
    "--repo": ("o/r", ("list",)),
    "--all": ("", ("board",)),
    "--by": ("week", ("costs",)),
    "--since": ("4w", ("costs",)),
}  # fmt: skip
"""A value of each option, and the commands whose request it changes."""
SEEN: Final[Mapping[str, Mapping[str, str]]] = {
    "acceptance/test_intake.py::test_an_intake_says_how_its_work_orders_are_done": {
        "intake add": "--every --model --project --approve-plan --draft --at-once --agent --repo --label",
    },
    "unit/clients/test_doctor.py::test_an_agent_that_is_tried_takes_one_turn": {"doctor": "--try"},
    "acceptance/test_work_orders.py::test_the_version_is_told": {"": "--version"},
    "acceptance/test_up.py::test_a_taken_port_is_refused_with_the_option_that_names_another": {"up": "--port"},
    "acceptance/test_http.py::test_serve_answers_beside_up_with_a_token_of_ones_own": {"serve": "--port"},
    "acceptance/test_http.py::test_serve_listens_where_it_is_told_but_lets_no_other_machine_in_without_a_token": {
        "serve": "--host",
    },
    "acceptance/test_up.py::test_one_state_directory_has_one_up": {"up": "--ui-port"},
    "acceptance/test_http.py::test_a_taken_api_port_is_refused_by_up": {"up": "--api-port"},
    "acceptance/test_options.py::test_a_sandbox_that_is_demanded_is_had_or_nothing_starts": {
        "up": "--sandbox", "demo": "--sandbox",
    },
    "acceptance/test_worker.py::test_a_worker_does_not_start_without_the_sandbox_that_is_demanded": {
        "worker": "--sandbox",
    },
    "acceptance/test_demo.py::test_a_malformed_answer_is_asked_for_again_by_the_finalizer": {"demo": "--scenario"},
    "acceptance/test_many.py::test_a_look_shows_those_that_are_meant": {
        "retry": "--failed --agent --repo --all", "approve": "--agent --repo --all", "cancel": "--agent --repo --all",
    },
    "acceptance/test_many.py::test_plans_are_approved_together_after_a_look": {"approve": "--yes"},
    "acceptance/test_many.py::test_one_that_refuses_holds_no_other_up": {"cancel": "--yes"},
    "acceptance/test_passing_trouble.py::test_what_a_full_disk_has_failed_is_retried_together": {"retry": "--yes"},
    "acceptance/test_mistakes.py::test_a_demo_with_an_agent_that_is_not_installed_is_refused": {"demo": "--agent"},
    "acceptance/test_watch.py::test_a_followed_board_shows_what_changes": {"board": "--follow"},
    "acceptance/test_work_orders.py::test_logs_follow_prints_one_object_a_line": {"logs": "--follow"},
    "acceptance/test_looking.py::test_a_list_has_what_was_asked_for": {"list": "--since"},
    "acceptance/test_looking.py::test_a_work_order_is_opened_in_the_browser": {"open": "--pr"},
    "acceptance/test_page.py::test_the_link_opens_the_page_until_a_person_makes_another_key": {"open": "--new-key"},
    "acceptance/test_work_orders.py::test_logs_tell_what_the_agents_said_and_raw_gives_their_bytes": {
        "logs": "--structured --raw",
    },
    "unit/agents_recordings/test_logs.py::test_what_was_asked_of_the_network_is_shown_without_a_server": {
        "logs": "--network",
    },
    "acceptance/test_upgrade.py::test_a_build_of_a_shared_server_gets_work_orders_by_a_command_alone": {
        "promote": "--ramp --force --within",
    },
    "acceptance/test_worker.py::test_register_creates_the_search_attributes_that_a_namespace_lacks": {
        "worker": "--register",
    },
    "acceptance/test_mistakes.py::test_doctor_warns_of_a_command_that_lacks_what_its_step_needs": {"doctor": "--repo"},
    "acceptance/test_before_paid.py::test_first_settings_are_written_once": {"init": "--repo"},
    "acceptance/test_options.py::test_an_issue_of_the_local_forge_has_its_labels": {"issue add": "--repo --label"},
    "acceptance/test_local_forge.py::test_issues_are_listed_shown_and_closed": {
        "issue list": "--repo --all", "issue show": "--repo", "issue close": "--repo",
    },
    "acceptance/test_local_forge.py::test_pull_requests_are_listed_shown_and_merged_in_a_checkout": {
        "pr list": "--repo --all", "pr show": "--repo", "pr diff": "--repo",
    },
    "acceptance/test_board.py::test_a_merge_is_on_the_board_at_once": {"pr merge": "--repo"},
    "acceptance/test_board.py::test_one_that_comes_after_another_begins_when_that_is_merged": {"pr close": "--repo"},
    "acceptance/test_decisions.py::test_a_failed_work_order_goes_on_at_the_step_that_failed": {
        "run": "--wait", "retry": "--wait",
    },
    "acceptance/test_pipelines.py::test_wait_fails_where_an_issue_does": {"pipeline": "--wait --id"},
    "acceptance/test_dry_run.py::test_a_dry_run_finds_the_mistakes_of_a_start": {"run": "--dry-run"},
    "acceptance/test_costs.py::test_every_face_says_what_a_pipeline_will_cost": {"pipeline": "--dry-run"},
    "acceptance/test_decisions.py::test_rescues_are_listed_for_all_work_orders_and_checkpoints_only_when_asked": {
        "rescue list": "--all",
    },
    "acceptance/test_decisions.py::test_a_rescue_restores_bit_for_bit": {"rescue restore": "--to"},
    "acceptance/test_work_orders.py::test_an_issue_of_the_local_forge_becomes_a_pull_request": {
        "issue add": "--title --body",
    },
}  # fmt: skip
"""The command and options whose effect a test shows, by test."""
ON_ALL: Final = {"--json", "--address"}
"""Options of nearly every command: `test_reply` covers the form, `acceptance/test_options` the address."""


class AskedError(Exception):
    """The server got a request."""


class Question:
    """Operations that raise the first request with its arguments."""

    def __init__(self, *names: str) -> None:
        """Begin, or continue, with the names that lead to the request."""
        self._names = names

    def __getattr__(self, name: str) -> "Question":
        """Return the attribute of the next name."""
        return Question(*self._names, name)

    async def __call__(self, *values: object, **named: object) -> object:
        """Raise the request.

        Raises:
            AskedError: Always.
        """
        raise AskedError(self._names, values, named)


class AskedServer(Server):
    """A server that raises its first request."""

    async def connect(self) -> Any:
        """Return operations that raise the request."""
        return Question()


async def question(command: str, *words: str) -> object:
    """Return the first request that a command line sends to the server."""
    row, given = parse((*command.split(), *words))
    try:
        await load(row.place)(replace(given, server=AskedServer(address="elsewhere:7233")))
    except AskedError as asked:
        return asked.args
    raise AssertionError(f"septet {command} asked for nothing")


@pytest.mark.parametrize(
    ("command", "option"), [(command, option) for option, (_, commands) in ASKED.items() for command in commands]
)
async def test_an_option_changes_what_is_asked_of_the_server(command: str, option: str) -> None:
    """With the option the command sends another request than without it."""
    usual = LINES[command]
    words = [word for at, word in enumerate(usual) if option not in usual[max(at - 1, 0) : at + 1]]
    value = [ASKED[option][0]] if ASKED[option][0] else []
    assert await question(command, *words, option, *value) != await question(command, *usual)


@pytest.mark.parametrize("test", SEEN)
def test_the_test_that_sees_an_option_is_there(test: str) -> None:
    """The named test exists and contains the command and the option."""
    path, _, function = test.partition("::")
    module = ast.parse((ROOT / "tests" / path).read_text(encoding="utf-8"))
    named = [node for node in ast.walk(module) if getattr(node, "name", "") == function]
    words = {node.value for each in named for node in ast.walk(each) if isinstance(node, ast.Constant)}
    wanted = " ".join(word for each in SEEN[test].items() for word in each)
    assert {*wanted.split()} <= words


def test_every_option_has_an_effect_that_is_seen() -> None:
    """An option without an entry fails here; options of inputs are in `test_options`."""
    of_inputs = {"run", "create", "pipeline"}
    beyond = {"--id", "--wait", "--again", "--dry-run"}
    wanted = {("", "--version")} | {
        (command, option)
        for path in leaves()
        for command, option in ((" ".join(path), each) for each in options_of(path))
        if option not in ON_ALL and (command not in of_inputs or option in beyond)
    }
    asked = {(command, option) for option, (_, commands) in ASKED.items() for command in commands}
    seen = {(command, option) for test in SEEN.values() for command in test for option in test[command].split()}
    assert sorted(wanted) == sorted(asked | seen)
