"""Shared parts of all workflows: stubs of activities, time-outs, inputs, search attributes, failures."""
