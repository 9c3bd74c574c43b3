"""Run turns: prepare a turn, reserve its budget, guard its attempt, and start its agents."""
