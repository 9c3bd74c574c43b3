"""The budgets of a step: a repository's own settings lower a budget, and never raise one."""

from datetime import UTC, datetime

import pytest
from fakes.opened_workspace import WORKSPACE

from septet.budgets.account import AccountState, ReserveCall, SettleCall
from septet.budgets.account_book import AccountBook
from septet.contracts.amounts import Spending, parse_limit
from septet.contracts.names import Step
from septet.contracts.order import StepSettings
from septet.contracts.rework import Rework
from septet.contracts.steps import StepCall
from septet.repository_file import load_repository_settings
from septet.repository_settings import RepositorySettings, openings_of
from septet.settings import Settings

NOON = datetime(2026, 3, 9, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("order", "repository", "limit"),
    [
        ("5usd", "3usd", "3usd"),
        ("5usd", "9usd", "5usd"),
        ("5usd,90min", "9usd,10min", "5usd,10min"),
        ("", "3usd", "3usd"),
        ("5usd/day", "3usd", "3usd"),
        ("5usd", "3usd/day", "3usd"),
        ("5usd/day", "3usd/day", "3usd/day"),
    ],
)
def test_a_repository_lowers_budgets_and_never_raises_one(order: str, repository: str, limit: str) -> None:
    """The lower of the work order's and the repository's budget holds in each unit, for the step too."""
    text = f'[limits]\nbudget = "{repository}"\n[steps.build_plan]\nbudget = "{repository}"\n'
    settings = load_repository_settings({".septet/septet.toml": text.encode()}.get)
    own = StepSettings(budget=order) if order else StepSettings()
    call = StepCall(step=Step.BUILD_PLAN, workspace=WORKSPACE, budget=order, settings=own)
    opening = openings_of(Settings(), call, settings)[0]
    assert (opening.account.scope, opening.account.limit) == ("order/wo-1", parse_limit(limit))
    assert opening.step_limit == parse_limit(limit)


@pytest.mark.parametrize("pipeline", ["", "pl-1"])
def test_budgets_that_nobody_has_set_are_asked_too_and_never_opened(pipeline: str) -> None:
    """An account without a limit gets requests too, because a user may set its limit later."""
    call = StepCall(step=Step.BUILD_PLAN, workspace=WORKSPACE, pipeline=pipeline)
    openings = openings_of(Settings(), call, RepositorySettings())
    own = ["order/wo-1", *([f"pipeline/{pipeline}"] if pipeline else [])]
    assert [opening.account.scope for opening in openings] == [*own, "project/o/r", "day"]
    assert not any(opening.opens for opening in openings)


@pytest.mark.parametrize("left", [False, True])
def test_a_work_order_that_a_reset_has_taken_out_of_its_pipeline_is_paid_from_that_budget(*, left: bool) -> None:
    """The pipeline's budget still limits a work order that a reset has taken out of the pipeline."""
    whose = {"pays_from": "pl-1"} if left else {"pipeline": "pl-1"}
    call = StepCall(step=Step.BUILD_PLAN, workspace=WORKSPACE, pipeline_budget="5usd").model_copy(update=whose)
    accounts = [opening.account for opening in openings_of(Settings(), call, RepositorySettings())]
    assert AccountState(scope="pipeline/pl-1", limit=parse_limit("5usd")) in accounts


@pytest.mark.parametrize(
    ("worker", "repository", "limit", "more"),
    [
        ("5usd", "3usd", "3usd", "9usd"),
        ("2usd", "3usd", "2usd", "8usd"),
        (None, "3usd", "3usd", "9usd"),
        ("5usd", None, "5usd", "5usd"),
    ],
)
def test_the_rounds_on_a_pull_request_have_a_budget_of_their_own(
    worker: str | None, repository: str | None, limit: str, more: str
) -> None:
    """The lower budget of the worker and the repository limits the rounds, as the step rework."""
    text = f'[pull_request]\nfollow_budget = "{repository}"\n' if repository else ""
    settings = load_repository_settings({".septet/septet.toml": text.encode()}.get)
    own = StepSettings(budget="1usd")
    rework = Rework(round=1, url="https://github.com/o/r/pull/1")
    call = StepCall(step=Step.IMPLEMENT_PLAN, workspace=WORKSPACE, settings=own, rework=rework)
    opening = openings_of(Settings(follow_budget=worker), call, settings)[0]
    assert (opening.account.scope, opening.step_limit, call.name) == ("order/wo-1", parse_limit(limit), "rework")
    book = AccountBook(opening.account)
    asked = ReserveCall(key="k", order_id="wo-1", step=call.name, step_limit=opening.step_limit)
    assert book.reserve(asked, NOON).granted
    book.settle(SettleCall(key="k", used=Spending(usd=9.0)), NOON)
    wait = book.reserve(asked.model_copy(update={"key": "l"}), NOON).wait
    assert wait is not None
    assert "The budget of the rounds on the pull request is used up" in wait.message
    assert f"septet budget raise order/wo-1 {more} --step rework" in wait.remedy
