"""The budget accounts that must allow the start of an agent, and the limits with which they open."""

from dataclasses import dataclass

from septet.budgets.account import DAY, ORDER, PIPELINE, PROJECT, AccountState
from septet.contracts.amounts import Limit, parse_limit
from septet.contracts.lanes import SummariseCall
from septet.contracts.steps import StepCall
from septet.repository_settings import RepositorySettings
from septet.settings import Settings


@dataclass(frozen=True, slots=True)
class Opening:
    """An account that must allow the start of an agent, with the limits of the reservation."""

    account: AccountState
    step_limit: Limit | None = None
    """The limit of the step, in the account of its work order; `None` in all other accounts."""

    @property
    def opens(self) -> bool:
        """Whether a reservation opens the account; if not, only a person can open it, by setting a budget."""
        return self.account.limit is not None or self.step_limit is not None


def openings_of(
    settings: Settings, call: StepCall | SummariseCall, repository: RepositorySettings
) -> list[Opening]:
    """Return the accounts that must allow an agent to start for a step or for a lane's summary."""
    step_limit, pipeline = None, call.pipeline
    if isinstance(call, StepCall):
        pipeline = call.pipeline or call.pays_from
        if call.rework is not None and not call.reads:
            step_limit = repository.budget_for_rounds(settings.follow_budget)
        else:
            step_limit = repository.budget_for_step(call.table, call.settings)
    limit = repository.budget_for(call.budget or settings.order_budget or "")
    order = AccountState(scope=f"{ORDER}/{call.workspace.work_order_id}", limit=limit)
    openings = [Opening(order, step_limit)]
    if pipeline:
        openings.append(Opening(AccountState(scope=f"{PIPELINE}/{pipeline}", limit=_limit(call.pipeline_budget))))
    day = _limit(settings.day_budget)
    day = day.model_copy(update={"daily": True}) if day is not None else None
    project = call.project or call.workspace.project
    of_project = AccountState(scope=f"{PROJECT}/{project}", limit=_limit(settings.project_budget))
    return [*openings, Opening(of_project), Opening(AccountState(scope=DAY, limit=day))]


def _limit(text: str | None) -> Limit | None:
    return parse_limit(text) if text else None
