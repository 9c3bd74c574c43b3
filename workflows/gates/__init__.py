"""Gates at which a work order waits for a person: the plan, findings."""
