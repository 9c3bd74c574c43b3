"""The commands that start work: run, create, intake, demo, issue and init."""
