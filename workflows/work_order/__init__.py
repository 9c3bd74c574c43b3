"""The workflow of one issue, from its text to its pull request."""

from workflows.work_order.workflow import WorkOrder

__all__ = ["WorkOrder"]
