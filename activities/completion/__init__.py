"""Judge an agent's answer: the proof of a step, its result and its checkpoint."""
