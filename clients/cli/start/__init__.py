"""The commands that start work: run, create, intake, demo and init."""
