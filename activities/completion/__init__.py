"""From an agent's answer to the proof of a step, its result and its checkpoint."""
