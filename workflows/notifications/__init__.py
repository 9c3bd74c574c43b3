"""What a work order reports to people, by a workflow that outlives the work order."""
