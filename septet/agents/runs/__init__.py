"""The agent runs that a host keeps: folders, locks, usage, sessions and logs; and the homes of agents."""
