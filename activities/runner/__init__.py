"""The activities of steps, rounds and the finalizer, and the sequence that all of them share."""
