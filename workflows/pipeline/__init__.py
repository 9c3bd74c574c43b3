"""The workflow of many issues: one agent plans them, and others carry out the plans."""

from workflows.pipeline.workflow import Pipeline

__all__ = ["Pipeline"]
