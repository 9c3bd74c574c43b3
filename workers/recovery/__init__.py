"""Take over the activities and agents of dead workers."""
