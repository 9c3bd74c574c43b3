"""Find the agents of a new work order that its budget cannot limit."""

from septet.agents.clis.registry import ADAPTERS
from septet.contracts.amounts import parse_limit
from septet.contracts.order import WorkOrderInput


def find_unlimited(order: WorkOrderInput) -> str:
    """Return a notice if agents do not report the amounts that the budget limits; else an empty text."""
    if order.budget is None:
        return ""
    limit = parse_limit(order.budget)
    named = [ADAPTERS[name] for name in (order.agent, order.fallback_agent) if name is not None]
    untold = [(each.name, each.capabilities.untold(limit.amounts)) for each in named]
    notes = [f"{name} reports {amounts}" for name, amounts in untold if amounts]
    better = limit.model_copy(update={"minutes": 90.0})
    remedy = f"Limit minutes too, such as `--budget {better}`."
    return f"Not limited by `--budget {limit}`: {', and '.join(notes)}. {remedy}" if notes else ""
