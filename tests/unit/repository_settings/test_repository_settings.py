"""A repository's own settings: what a repository may set, and what only others may set."""

import time
from typing import Final

import pytest

from septet.contracts.names import Step
from septet.contracts.order import StepSettings, Timeouts
from septet.errors import RepositorySettingsError
from septet.repository_file import SIZE_LIMIT_BYTES, line_of, load_repository_settings
from septet.repository_settings import RepositorySettings

NAMERS: Final = ("order-step", "repository-step", "order", "repository", "worker")


def load(text: str | bytes) -> RepositorySettings:
    content = text.encode() if isinstance(text, str) else text
    return load_repository_settings(lambda path: content if path == ".septet/septet.toml" else None)


def test_every_setting_is_read() -> None:
    """Every setting of a file is read, with a BOM and CRLF too."""
    settings = load(
        "\ufeffchecks = ['make \"lint all\"', ['python', '-m', 'unit test', 'a && b']]\r\n"
        "setup = ['npm ci', ['make', 'all tools']]\r\n"
        "[agents]\r\ndefault = 'codex'\r\nmodel = 'm-1'\r\n"
        "[limits]\r\nwall_seconds = 60\r\ncheck_seconds = 5.5\r\nsetup_seconds = 90\r\n"
        "[steps.implement_plan]\r\nmodel = 'm-2'\r\nturns = 9\r\n"
        "[commit]\r\nassisted_by = false\r\n"
        "[issue]\r\nprogress_comment = true\r\n"
        "[pull_request]\r\ndraft = true\r\nlabels = ['good first issue']\r\nreviewers = ['ada']\r\n"
        "assignees = ['eve']\r\ncloses_issue = false\r\n"
    )
    assert settings.agent == "codex"
    assert settings.checks == (("make", "lint all"), ("python", "-m", "unit test", "a && b"))
    assert settings.setup == (("npm", "ci"), ("make", "all tools"))
    assert (settings.check_seconds, settings.setup_seconds) == (5.5, 90)
    assert settings.progress_comment
    assert not settings.assisted_by
    wishes = settings.pull_request
    assert (wishes.draft, wishes.labels, wishes.closes_issue) == (True, ["good first issue"], False)
    assert (wishes.reviewers, wishes.assignees) == (["ada"], ["eve"])
    assert settings.model_for(Step.BUILD_PLAN) == "m-1"
    assert settings.model_for(Step.IMPLEMENT_PLAN) == "m-2"


@pytest.mark.parametrize("first", range(len(NAMERS)))
def test_a_step_has_the_model_of_whoever_comes_first(first: int) -> None:
    """A model comes from the first of order's step, repository's step, order, repository and worker."""
    order_step, repository_step, order, repository, worker = (None,) * first + NAMERS[first:]
    settings = RepositorySettings(
        model=repository, steps={Step.IMPLEMENT_PLAN: StepSettings(model=repository_step)}
    )
    found = settings.model_for(Step.IMPLEMENT_PLAN, order, StepSettings(model=order_step), worker)
    assert found == NAMERS[first]


@pytest.mark.parametrize(
    ("allowed", "step", "expected"),
    [
        (Timeouts(wall_seconds=3600, idle_seconds=600, turns=500), Step.CLASSIFY_ISSUE, (900, 300, 60)),
        (Timeouts(wall_seconds=3600, idle_seconds=600, turns=500), Step.IMPLEMENT_PLAN, (1800, 200, 100)),
        (Timeouts(wall_seconds=10, idle_seconds=5, turns=1), Step.IMPLEMENT_PLAN, (10, 5, 1)),
    ],
)
def test_limits_can_only_be_lowered(allowed: Timeouts, step: Step, expected: tuple[int, int, int]) -> None:
    """A step's limit is the lowest of the work order's, the repository's, the step's and the default's."""
    settings = load(
        "[limits]\nwall_seconds = 1800\nidle_seconds = 300\nturns = 100\n"
        "[steps.implement_plan]\nwall_seconds = 86400\nidle_seconds = 200\nturns = 10000\n"
    )
    limits = settings.limits_for(step, allowed)
    assert (limits.wall_seconds, limits.idle_seconds, limits.turns) == expected


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("\n[limits]\nturns = 'x'\n", 3, "limits.turns must be a whole number"),
        ("[limits]\n\n\nturns = 0\n", 4, "limits.turns must be at least 1"),
        ("limits = 3\n", 1, "limits must be a table"),
        ("[agents]\ndefault = '--model'\n", 2, "agents.default must be a name"),
        ("[agents]\ndefault = 'gpt'\n", 2, "`gpt` is not an agent"),
        ("# c\n[limits]\nturnss = 1\n", 3, "limits.turnss is not a setting. Did you mean turns?"),
        ("[steps.implement]\nturns = 1\n", 1, "steps.implement is not a setting. Did you mean implement_plan?"),
        (
            "zebra.stripes = 1\n",
            1,
            "zebra is not a setting. There are: protected, on_protected, read_outgoing, setup, checks, on_failing_base, branch_prefix, agents, limits, steps, allow_findings, commit, issue, pull_request.",
        ),
        ("\nchecks = [\n 'a',\n 3,\n]\n", 2, "checks.1 must be text"),
        ("checks = ['a && b']\n", 1, "'a && b' is written for a shell"),
        ('checks = ["a \'b"]\n', 1, "cannot be split into words: No closing quotation"),
        ("checks = ['make', ' ']\n", 1, "a check names no program"),
        ("setup = ['cd a', 'npm ci > log']\n", 1, "set-up commands run without one"),
        ("[limits]\nbudget = 'much'\n", 2, "limits.budget must be an amount such as 5usd"),
        (
            "[agents]\nbudget = '5usd'\n",
            2,
            "agents.budget is not a setting. Move it to `[limits]` or `[steps.STEP]`",
        ),
        ('checks = [["a", "\\u0000"]]\n', 1, "a check names no program"),
    ],
)
def test_what_is_wrong_is_named_with_file_line_and_remedy(text: str, line: int, words: str) -> None:
    """The error names the file, the line, the wrong key and a remedy."""
    with pytest.raises(RepositorySettingsError) as caught:
        load(text)
    assert str(caught.value).startswith(f".septet/septet.toml line {line}: ")
    assert words in str(caught.value)
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("sandbox = 'off'\n", 1, "The sandbox is the worker's"),
        ("[agents]\nallow_hosts = ['evil']\n", 2, "The sandbox is the worker's"),
        ("[steps.implement_plan]\napi_key = 'k'\n", 2, "Keys, programs and the environment are the worker's"),
        ("[agents]\npath = './agent'\n", 2, "Keys, programs and the environment are the worker's"),
        ("[limits]\nmax_budget_usd = 1000\n", 2, "A budget belongs to those who pay"),
    ],
)
def test_a_repository_loosens_neither_sandbox_nor_keys_nor_budgets(text: str, line: int, reason: str) -> None:
    """A key about sandbox, keys or budgets is refused, and the error names their owner."""
    with pytest.raises(RepositorySettingsError) as caught:
        load(text)
    assert str(caught.value).startswith(f".septet/septet.toml line {line}: ")
    assert f"cannot be set here. {reason}" in str(caught.value)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"a = 1\nb =\n", "is not valid TOML: Invalid value (at line 2"),
        (b"a = 1\na = 2", "is not valid TOML: Cannot overwrite a value (at line 2, the last one)."),
        (b"a = " + b"[" * 30_000, "is not valid TOML"),
        (b"a = 1\nb = '\xff'\n", "line 2 is not valid UTF-8"),
        (b"#" * (SIZE_LIMIT_BYTES + 1), f"holds {SIZE_LIMIT_BYTES + 1} bytes, {SIZE_LIMIT_BYTES} are allowed"),
    ],
)
def test_a_file_that_is_no_settings_file_is_refused(content: bytes, words: str) -> None:
    """Wrong syntax, a wrong encoding and a file over the limit are refused."""
    with pytest.raises(RepositorySettingsError) as caught:
        load(content)
    assert words in str(caught.value)
    assert caught.value.remedy


def test_what_classifies_and_names_has_no_write_access() -> None:
    """Without settings three steps may only read, and all other steps may write."""
    settings = load_repository_settings(lambda _: None)
    tools = {step: settings.tools_for(step) for step in Step}
    assert [step for step in Step if tools[step] == "read"] == [
        Step.CLASSIFY_ISSUE,
        Step.FIND_PLAN_FILE,
        Step.GENERATE_BRANCH,
    ]
    assert {tools[step] for step in Step} == {"read", "all"}
    assert settings.limits_for(Step.CLASSIFY_ISSUE, Timeouts()).turns == 60


def test_a_repository_takes_tools_away_and_gives_none() -> None:
    """A repository can take tools away from a step and cannot add tools; an unknown word is refused."""
    wishes = '[steps.create_commit]\ntools = "read"\n[steps.classify_issue]\ntools = "all"\n'
    settings = load(wishes)
    assert settings.tools_for(Step.CREATE_COMMIT) == "read"
    assert settings.tools_for(Step.CLASSIFY_ISSUE) == "read"
    with pytest.raises(RepositorySettingsError, match="line 2"):
        load('[steps.create_commit]\ntools = "more"\n')


def test_what_a_work_order_says_for_a_step_counts_before_all_else() -> None:
    """The model, limits and tools that a person sets for a step come before the repository's."""
    settings = load("[limits]\nturns = 5\n[steps.classify_issue]\nmodel = 'm-1'\ntools = 'none'\n")
    own = StepSettings(model="m-2", tools="all", turns=90)
    step, allowed = Step.CLASSIFY_ISSUE, Timeouts()
    assert settings.model_for(step, "asked", own) == "m-2"
    assert settings.tools_for(step, own) == "all"
    limits = settings.limits_for(step, own.over(allowed), own)
    assert (limits.turns, limits.wall_seconds, limits.idle_seconds) == (90, 900.0, 600.0)


TEXT = '''\
# a comment
title = "x"
list = [
  1,
  2,
]
text = """
[not.a.table]
fake = 1
"""

[a]
b.c = 1
[a.d]
"quoted key" = { inner = 1, other = 2 }
[[many]]
x = 1
'''


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (["title"], 2),
        (["list", 1], 3),
        (["text"], 7),
        (["a", "b", "c"], 13),
        (["a", "d", "quoted key", "other"], 15),
        (["many"], 16),
        (["not"], 1),
        (["a", "zzz"], 12),
    ],
)
def test_a_key_is_found_where_its_statement_begins(path: list[str | int], line: int) -> None:
    """A key has the first line of its statement, and an unknown key has its table's line."""
    assert line_of(TEXT, path) == line


def test_a_very_long_statement_does_not_hang() -> None:
    """A list of 3000 lines is skipped in less than two seconds, and the next key is found."""
    text = "long = [\n" + "  1,\n" * 3000 + "]\n[limits]\nturns = 1\n"
    started = time.process_time()
    assert line_of(text, ["limits", "turns"]) == 3004
    assert time.process_time() - started < 2.0
