"""Which budgets a step has: a repository's own settings lower them, and never raise one."""

import pytest

from activities.budget_openings import openings_of
from septet.contracts.amounts import parse_limit
from septet.contracts.limits import StepSettings
from septet.contracts.names import Step
from septet.contracts.steps import StepCall
from septet.contracts.workspace import Workspace
from septet.repository_settings import load_repository_settings
from septet.settings import Settings

WORKSPACE = Workspace(
    work_order_id="wo-1", host="h", task_queue="q", repository="/app", forge="local", project="app",
    base_branch="main", base_sha="", path="/", agent="claude",
)  # fmt: skip


@pytest.mark.parametrize(
    ("order", "repository", "limit"),
    [
        ("5usd", "3usd", "3usd"),
        ("5usd", "9usd", "5usd"),
        ("5usd,90min", "9usd,10min", "5usd,10min"),
        ("", "3usd", "3usd"),
    ],
)
def test_a_repository_lowers_budgets_and_never_raises_one(order: str, repository: str, limit: str) -> None:
    """Of the work order's budget and the repository's the lower one holds in each unit, and so for a step."""
    text = f'[limits]\nbudget = "{repository}"\n[steps.build_plan]\nbudget = "{repository}"\n'
    settings = load_repository_settings({".septet/septet.toml": text.encode()}.get)
    own = StepSettings(budget=order) if order else StepSettings()
    call = StepCall(step=Step.BUILD_PLAN, workspace=WORKSPACE, budget=order, settings=own)
    opening = openings_of(Settings(), call, settings)[0]
    assert (opening.account.scope, opening.account.limit) == ("order/wo-1", parse_limit(limit))
    assert opening.step_limit == parse_limit(limit)
