"""The commands that start work: run, create, pipeline, intake, demo, issue and init."""
