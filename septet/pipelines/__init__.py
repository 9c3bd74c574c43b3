"""Pipelines, without Temporal: their input, their views, their decisions and their files."""
