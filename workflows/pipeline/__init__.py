"""The workflow of many issues, planned by one agent and carried out by others."""

from workflows.pipeline.workflow import Pipeline

__all__ = ["Pipeline"]
