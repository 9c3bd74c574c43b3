"""Commands that ask for work: `run` starts a work order, `create` puts one on the board."""

from typing import Annotated, Literal

import typer

from clients.cli import options as given

app = typer.Typer()


@app.command()
def run(
    repo: given.Repo,
    issue_number: given.IssueNumber = None,
    issue_file: given.IssueFile = None,
    title: given.Title = None,
    body: given.Body = None,
    agent: given.Agent = None,
    model: given.Model = None,
    base: given.Base = None,
    order_id: given.OrderId = None,
    project: given.Project = None,
    priority: given.Priority = None,
    impact: given.Impact = None,
    effort: given.Effort = None,
    after: given.After = None,
    after_until: given.AfterUntil = None,
    label: given.Label = None,
    approve_plan: given.ApprovePlan = False,
    follow_pr: given.FollowPr = False,
    draft: given.Draft = False,
    step: given.StepSettings = None,
    wait: given.Wait = False,
    address: given.Address = None,
    as_json: given.Json = False,
) -> None:
    """Start a work order.

    Example: septet run --repo https://github.com/o/r --issue 42 --wait --step implement_plan.model=opus
    """
    from clients.cli import orders

    issue = orders.IssueText(issue_number, issue_file, title, body)
    choice = {
        "agent": agent, "model": model, "base": base, "project": project, "priority": priority, "impact": impact,
        "effort": effort, "after": after, "after_until": after_until, "labels": label,
        "approve_plan": approve_plan, "follow_pr": follow_pr, "draft": draft, "steps": step,
    }  # fmt: skip
    orders.run(repo, issue, choice, order_id=order_id, wait=wait, address=address, as_json=as_json)


@app.command()
def create(
    repo: given.Repo,
    issue_number: given.IssueNumber = None,
    issue_file: given.IssueFile = None,
    title: given.Title = None,
    body: given.Body = None,
    stage: Annotated[
        Literal["collected", "triaged"], typer.Option(help="Wait for a person, or for its turn.")
    ] = "collected",
    agent: given.Agent = None,
    model: given.Model = None,
    base: given.Base = None,
    order_id: given.OrderId = None,
    project: given.Project = None,
    priority: given.Priority = None,
    impact: given.Impact = None,
    effort: given.Effort = None,
    after: given.After = None,
    after_until: given.AfterUntil = None,
    label: given.Label = None,
    approve_plan: given.ApprovePlan = False,
    follow_pr: given.FollowPr = False,
    draft: given.Draft = False,
    step: given.StepSettings = None,
    address: given.Address = None,
    as_json: given.Json = False,
) -> None:
    """Put a work order on the board: nothing is started before it is moved on, or has its turn.

    Example: septet create --repo . --title 'Totals are wrong' --priority 5 --after wo-41
    """
    from clients.cli import orders

    issue = orders.IssueText(issue_number, issue_file, title, body)
    choice = {
        "stage": stage, "agent": agent, "model": model, "base": base, "project": project, "priority": priority,
        "impact": impact, "effort": effort, "after": after, "after_until": after_until, "labels": label,
        "approve_plan": approve_plan, "follow_pr": follow_pr, "draft": draft, "steps": step,
    }  # fmt: skip
    orders.run(repo, issue, choice, order_id=order_id, wait=False, address=address, as_json=as_json)
