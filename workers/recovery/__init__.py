"""The takeover of a dead worker's activities, agents and turns."""
