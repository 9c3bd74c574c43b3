"""Take over a dead worker's activities and agents."""
