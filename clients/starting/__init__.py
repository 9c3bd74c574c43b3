"""Check, estimate and start work orders and intakes."""
