"""The commands of `septet`: one table, in the order of the help. A command's module is imported when it is used."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Final

_ORDER: Final = "wo-42"


@dataclass(frozen=True, slots=True)
class CommandRow:
    """What `septet --help` says of a command, and where it is."""

    place: str
    """Module and function; empty where there are only subcommands."""
    summary: str
    example: str = ""
    """What follows the command in the example of its help; with `septet` in it, the whole line."""
    notes: str = ""
    """A paragraph between the summary and the example."""
    commands: "Mapping[str, CommandRow]" = field(default_factory=dict)
    """Its subcommands."""
    serves: bool = False
    """Whether the command serves until it is ended, so that its errors go to its log."""
    has_keys: bool = False
    """Whether the process needs the keys of its environment, and so takes them out of the sight of other processes."""

    def text(self, whole: str) -> str:
        """Return what its help says first; `whole` is the command with its parents."""
        example = self.example if " septet " in f" {self.example}" else f"{whole} {self.example}".rstrip()
        return "\n\n".join(filter(None, (self.summary, self.notes, f"Example: {example}" if self.place else "")))


def _of_order(module: str, name: str, summary: str, example: str = _ORDER) -> CommandRow:
    return CommandRow(f"clients.cli.{module}:{name}", summary, example)


_PIPELINE: Final = "pl-1f0c9a2b"
_PIPELINES: Final = {
    "show": _of_order("pipelines", "show", "Show one pipeline: where each issue is, with its commit, pull request and reason.", _PIPELINE),
    "list": _of_order("pipelines", "list_pipelines", "List the pipelines, open ones first.", ""),
    "results": _of_order("pipelines", "results", "Show what was planned and what was carried out so far, as two JSON documents.", f"{_PIPELINE} --json"),
    "report": _of_order("pipelines", "report", "Show the report on a pipeline that is over, as Markdown.", f"{_PIPELINE} > report.md"),
    "pause": _of_order("pipelines", "pause", "Start nothing new until you resume it.", _PIPELINE),
    "resume": _of_order("pipelines", "resume", "Continue after a pause.", _PIPELINE),
    "skip": _of_order("pipelines", "skip", "Skip an issue, and the issues that depend on it.", f"{_PIPELINE} 42 --why 'done by hand'"),
    "replan": _of_order("pipelines", "replan", "Plan an issue again before it is implemented.", f"{_PIPELINE} 42 --why 'Leave the schema as it is.'"),
    "stop": _of_order("pipelines", "stop", "Finish the running issues and start no others.", _PIPELINE),
    "cancel": _of_order("pipelines", "cancel", "Stop all agents now; a rescue keeps their work.", _PIPELINE),
}  # fmt: skip
_INTAKES: Final = {
    "add": _of_order("intake", "add", "Start a work order for each open issue with a label, now and from now on.", "--repo https://github.com/o/r --label septet"),
    "list": _of_order("intake", "list_intakes", "List the intakes.", ""),
    "remove": _of_order("intake", "remove", "Stop taking issues; work orders that have started continue.", "septet-intake-o-r-1f0c9a2b-9c3d1e"),
}  # fmt: skip
_ISSUES: Final = {
    "add": _of_order("local_forge", "add_issue", "Add an issue.", "--title 'Totals are wrong' --body 'add(1, 2) gives -1'"),
    "list": _of_order("local_forge", "list_issues", "List the open issues.", ""),
    "show": _of_order("local_forge", "show_issue", "Show an issue with its comments.", "1"),
    "close": _of_order("local_forge", "close_issue", "Close an issue.", "1"),
}  # fmt: skip
_BUDGETS: Final = {
    "list": _of_order("budgets", "list_budgets", "Show the budgets: what was used, and how many work orders wait.", ""),
    "show": _of_order("budgets", "show", "Show one budget: its limit, what was used by step and day, and who waits.", "day"),
    "set": _of_order("budgets", "set_budget", "Set a budget, or remove its limit with `none`; work orders that wait for it continue if there is room.", "project/o/r 20usd/day"),
    "raise": _of_order("budgets", "raise_budget", "Raise a budget by an amount; work orders that wait for it continue.", "wo-42 5usd"),
}  # fmt: skip
_PULLS: Final = {
    "list": _of_order("local_forge", "list_pull_requests", "List the open pull requests.", ""),
    "show": _of_order("local_forge", "show_pull_request", "Show a pull request: title, branches, state and text.", "1"),
    "diff": _of_order("local_forge", "diff_pull_request", "Show what a pull request changes, paged and in colours on a terminal.", "1"),
    "merge": _of_order("local_forge", "merge_pull_requests", "Merge pull requests into their base, and bring a clean checkout of the base along.", "1 2"),
    "close": _of_order("local_forge", "close_pull_requests", "Close pull requests without a merge; their branches stay.", "1"),
}  # fmt: skip
_RESCUES: Final = {
    "list": _of_order("rescues", "list_rescues", "List the rescues on this host."),
    "restore": _of_order("rescues", "restore", "Restore a snapshot, bit for bit, to a new folder. Its `.git` has no hooks or settings of an agent.", "wo-42/0007-rescue --to /tmp/back"),
}  # fmt: skip
GROUPS: Final[Mapping[str, Mapping[str, CommandRow]]] = {
    "Start": {
        "run": _of_order("start", "run", "Start a work order: an issue becomes a pull request.", "https://github.com/o/r/issues/42 --wait"),
        "create": _of_order("start", "create", "Put a work order on the board; it starts later.", "--title 'Totals are wrong' --priority 5 --after wo-41"),
        "pipeline": CommandRow("clients.cli.pipelines:pipeline", "Work on many issues: one agent plans them, another implements the plans.", "--repo https://github.com/o/r --issues 1,2,3 --wait", commands=_PIPELINES),
        "intake": CommandRow("", "Turn issues with a label into work orders.", commands=_INTAKES),
        "demo": CommandRow("clients.cli.demo:demo", "Try Septet: turn an issue of a sample repository into a pull request.", "--scenario crash", has_keys=True),
        "issue": CommandRow("", "Add, list, show and close issues of a repository on this machine.", commands=_ISSUES),
        "init": CommandRow("clients.cli.init:init", "Write a first .septet/septet.toml for a repository."),
    },
    "Watch": {
        "watch": _of_order("follow", "watch", "Watch a work order live until it ends: steps, tool calls, tokens, plan and changes."),
        "show": _of_order("show", "show", "Show one work order: why it waits, its progress and its result."),
        "list": _of_order("show", "list_orders", "List work orders, open ones first.", "--state failed --since 7d"),
        "board": _of_order("show", "board", "Show the work orders by stage.", "--project o/r --follow"),
        "logs": _of_order("follow", "logs", "Show what the agents of a work order said and did.", "wo-42 --follow"),
        "plan": _of_order("show", "plan", "Show the plan of a work order."),
        "diff": _of_order("show", "diff", "Show all changes of a work order so far, paged and in colour on a terminal."),
        "steps": _of_order("show", "steps", "Show each step in full: result, session, tokens, files and warnings.", "wo-42 --json"),
        "costs": _of_order("costs", "costs", "Show what agents have cost: dollars, tokens and minutes; costs of the last five minutes may be missing.", "--by week --project o/r"),
        "open": _of_order("open", "open_in_browser", "Open the board, or a work order, in your browser."),
    },
    "Decide": {
        "approve": _of_order("decide", "approve", "Approve the plan or the findings of a work order, or the plans of several."),
        "reject": _of_order("decide", "reject", "Reject the plan or the findings of a work order: the agent tries again with your feedback.", "wo-42 --feedback 'Round the total, not each item.'"),
        "cancel": _of_order("decide", "cancel", "Stop work orders and keep their work in rescues."),
        "move": _of_order("decide", "move", "Move a work order on the board.", "wo-42 triaged --why 'next in line'"),
        "budget": CommandRow("", "Show, set and raise budgets.", commands=_BUDGETS),
        "pr": CommandRow("", "List, show, merge and close pull requests of a repository on this machine.", commands=_PULLS),
    },
    "Recover": {
        "retry": _of_order("decide", "retry", "Continue work orders that failed, were cancelled, are blocked or ended with their plan.", "wo-42 --from implement_plan"),
        "refresh": _of_order("show", "refresh", "Check now what a work order waits for: its pull request, host or predecessors."),
        "rescue": CommandRow("", "List and restore saved work.", commands=_RESCUES),
        "doctor": CommandRow("clients.cli.checks:doctor", "Check this machine: what is missing, and how to fix it.", "--repo ."),
        "docs": CommandRow("clients.cli.docs:docs", "Show a page of the documentation, or list all pages.", "commands"),
        "host-gone": CommandRow("clients.cli.hosts:host_gone", "Declare a host dead, so that its work orders and pipelines continue elsewhere.", "3f9a2c71d0be", notes="What its agents did since the last checkpoint may be paid for twice."),
    },
    "Serve": {
        "up": CommandRow("clients.cli.up:up", "Run server, worker, page and HTTP API in this terminal, until Ctrl-C.", has_keys=True),
        "worker": CommandRow("clients.cli.worker:worker", "Run a worker for a shared Temporal server, until SIGTERM.", "TEMPORAL_ADDRESS=temporal:7233 septet worker", has_keys=True, serves=True),
        "serve": CommandRow("clients.cli.serve:serve", "Serve the page and the HTTP API, until SIGTERM. `septet up` serves them too.", "--address temporal:7233", has_keys=True, serves=True),
        "mcp": CommandRow("clients.cli.mcp:mcp", "Give work orders to an agent as tools, over stdin and stdout (the Model Context Protocol).", "claude mcp add septet -- septet mcp", has_keys=True),
        "runner": CommandRow("clients.cli.runner:runner", "Start agents for workers that come and go, until SIGTERM.", "septet runner & SEPTET_RUNNER=true septet worker", serves=True),
        "promote": CommandRow("clients.cli.promote:promote", "Choose the workers' build that gets the work orders of a shared server.", "--ramp 10"),
        "backup": CommandRow("clients.cli.backup:backup", "Copy this host's state directory, with the embedded server's database, while it runs.", "/backups/2026-11-25"),
        "codec": CommandRow("", "Make keys that encrypt what Temporal keeps.", commands={
            "new-key": CommandRow("clients.cli.codec:new_key", "Print a new key as a line for the file that SEPTET_SEAL_KEYS_FILE names.", "2026-11 >> seal-keys"),
        }),
    },
}  # fmt: skip
"""What people want to do, the most used first."""
SEPTET: Final = CommandRow(
    "",
    "Turn an issue into a pull request with a coding-agent CLI, as a durable Temporal workflow.",
    commands={name: command for group in GROUPS.values() for name, command in group.items()},
)
HELP: Final = ("-h", "--help")
EXIT_CODES: Final = (
    "Exit codes: 0 ok, 1 failed, 2 usage, 3 not found, 4 server not reached, 5 refused, 6 already running, "
    "130 interrupted."
)


def find_command(words: Sequence[str]) -> tuple[CommandRow, list[str]]:
    """Return the command that a command line begins with, as far as there is such a command, and its words."""
    found, path = SEPTET, []
    for word in words:
        if word not in found.commands:
            break
        found = found.commands[word]
        path.append(word)
    return found, path


def load(place: str) -> Any:  # noqa: ANN401 -- whatever is there
    """Import what a place names, such as `clients.cli.show:board`."""
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)
