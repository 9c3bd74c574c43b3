"""Run a turn of an agent: recovery, launch, polls of its stream, and the end."""
