"""Check, estimate and start work orders, pipelines and intakes."""
