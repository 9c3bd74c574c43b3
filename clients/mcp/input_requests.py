"""Ask people for decisions on work orders by forms that an MCP client shows, and carry out the answers."""

import hashlib
import json
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import JsonValue, StringConstraints, ValidationError

from clients.executions.messages import unanswered
from clients.operations.operations import Operations
from septet.budgets.account import RaiseCall
from septet.contracts.amounts import BudgetWait, Spending, amount_to_add, parse_limit
from septet.contracts.decisions import Words, parse_decision
from septet.contracts.facts import tell_findings
from septet.contracts.replies import DetailReply
from septet.contracts.task import Task
from septet.contracts.wire import Wire
from septet.contracts.wording import describe_mistakes
from septet.errors import InvalidInputError, NotFoundError, RefusedTransitionError

_PLAN_CHARACTERS: Final = 8000
"""The most characters of a plan that a form shows; the tool `plan` returns more of a longer plan."""
_KEY_LENGTH: Final = 16
_APPROVE: Final = "approve"
_REJECT: Final = "reject"
_REMEDY: Final = "Answer with decision `approve`, or with decision `reject` and feedback."


class Answers(Wire):
    """The values that a person enters in a form."""

    decision: Annotated[str, StringConstraints(max_length=20)] = ""
    feedback: Words = ""
    amount: Annotated[str, StringConstraints(max_length=100)] = ""


class InputResponse(Wire):
    """A client's answer to a form; only the action `accept` decides anything."""

    action: Literal["accept", "decline", "cancel"]
    content: Answers | None = None


async def input_requests(operations: Operations, detail: DetailReply) -> dict[str, JsonValue]:
    """Return the form for the decision that a work order waits for, under the form's key; empty if there is none.

    Raises:
        ServerNotReachedError: The work order waits for a decision, but no worker answered.
    """
    task = detail.task
    if task.findings:
        ids = ",".join(finding.id for finding in task.findings)
        can_approve = _can_all_pass(task)
        choice = "Approve to let all of it pass, or reject" if can_approve else "Reject"
        found = f"{task.id} ({task.title}): {tell_findings(task.findings)}."
        message = f"{found}\n{choice} to have the agent take it out."
        return {_key(detail, ids): _form(message, can_approve=can_approve)}
    if task.budget is not None and task.budget.is_spent:
        return {_key(detail, f"{task.budget.scope} {task.budget.limit}"): _budget_form(task, task.budget)}
    if task.waits_for_a_decision:
        key = _key(detail, task.plan_sha256 or "")
        return {key: _form(await _plan_text(operations, task), can_approve=True)}
    return {}


async def decide(operations: Operations, task: Task, response: Mapping[str, Any], who: str) -> None:
    """Carry out the answer to a form: approve or reject the plan or the findings, or raise a budget.

    Raises:
        InvalidInputError: The form was accepted without a decision, or with one that the form does not offer.
        RefusedTransitionError: The work order no longer waits for the decision of the form.
    """
    try:
        answered = InputResponse.model_validate_json(json.dumps(response))
    except ValidationError as error:
        raise InvalidInputError(f"{describe_mistakes(error)}.", remedy=_REMEDY) from error
    if answered.action != "accept":
        return
    answers = answered.content or Answers()
    if task.budget is not None:
        await _raise_budget(operations, task.budget, answers.amount, who)
        return
    plan = None if task.findings else task.plan_sha256
    if answers.decision == _REJECT and answers.feedback.strip():
        await operations.decisions.reject(task.id, answers.feedback, plan, who)
    elif answers.decision == _APPROVE and _can_all_pass(task):
        findings = tuple(finding.id for finding in task.findings)
        await operations.decisions.approve(task.id, plan, who, findings=findings)
    else:
        raise InvalidInputError(f"{task.id}: the answer does not decide anything.", remedy=_REMEDY)


async def _raise_budget(operations: Operations, wait: BudgetWait, amount: str, who: str) -> None:
    """Raise the budget for which a task waits, unless the budget's limit has changed meanwhile."""
    try:
        call = parse_decision(RaiseCall, limit=amount.strip(), step=wait.step, who=who, expected=wait.limit)
        await operations.budgets.raise_limit(wait.scope, call)
    except (InvalidInputError, RefusedTransitionError) as error:
        remedy = f"Answer with the amount to add, such as {_amount_to_add(wait)}."
        raise InvalidInputError(error.message, remedy=remedy) from error


def _amount_to_add(wait: BudgetWait) -> str:
    return amount_to_add(parse_limit(wait.limit), Spending())


def _can_all_pass(task: Task) -> bool:
    """Return whether a person may approve all findings; findings without an id cannot be approved."""
    return all(finding.id for finding in task.findings)


def _key(detail: DetailReply, subject: str) -> str:
    """Return the key of a form, made from the decision's subject and the time when the wait for it began."""
    task, last = detail.task, detail.history[-1] if detail.history else None
    is_known = bool(task.steps) or task.budget is not None  # the row has the budget alone
    if last is None or last.to != task.stage or not is_known:
        raise unanswered(task)
    question = f"{subject} {len(detail.history)} {last.when}"
    return f"decision-{hashlib.sha256(question.encode()).hexdigest()[:_KEY_LENGTH]}"


def _form(message: str, *, can_approve: bool) -> JsonValue:
    choices: list[JsonValue] = [_APPROVE, _REJECT] if can_approve else [_REJECT]
    feedback = "What the agent should do differently; needed to reject."
    properties: dict[str, JsonValue] = {
        "decision": {"type": "string", "title": "Decision", "enum": choices},
        "feedback": {"type": "string", "title": "Feedback", "description": feedback},
    }
    return _elicitation(message, properties, "decision")


def _budget_form(task: Task, wait: BudgetWait) -> JsonValue:
    """Return the form for a higher budget; for a daily budget, the form names the time when work continues."""
    resets = f" It continues by itself at {wait.until}." if wait.until else ""
    message = f"{task.id} ({task.title}) waits. {wait.message} Raise it to continue.{resets}"
    example = f"Such as {_amount_to_add(wait)}."
    amount: JsonValue = {"type": "string", "title": "Amount to add", "description": example}
    return _elicitation(message, {"amount": amount}, "amount")


def _elicitation(message: str, properties: dict[str, JsonValue], required: str) -> JsonValue:
    schema: JsonValue = {"type": "object", "properties": properties, "required": [required]}
    params: JsonValue = {"mode": "form", "message": message, "requestedSchema": schema}
    return {"method": "elicitation/create", "params": params}


async def _plan_text(operations: Operations, task: Task) -> str:
    question = f"{task.id} ({task.title}) waits for your approval of its plan {task.plan_path}."
    try:
        plan = (await operations.reading.plan(task.id)).plan.text
    except NotFoundError as error:  # another host has it
        return f"{question} {error.message} {error.remedy}"
    shown = plan if len(plan) <= _PLAN_CHARACTERS else f"{plan[:_PLAN_CHARACTERS]}\n[…]"
    left = "".join(f"\n\n{rescue.telling}" for rescue in task.left_beside_plan)
    return f"{question}{left}\n\n{shown}"
