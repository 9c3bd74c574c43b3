"""The notifications of people about a work order, sent by a workflow that outlives it."""
