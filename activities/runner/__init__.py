"""The activities of steps, rounds and the finalizer, and the sequence of actions that they share."""
