"""Logs, metrics, traces and health of a worker."""
