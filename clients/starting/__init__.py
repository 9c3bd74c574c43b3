"""Check, estimate and start work orders, and add intakes."""
