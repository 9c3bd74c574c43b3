"""The past costs of agents, and the estimate of the costs of work orders."""
