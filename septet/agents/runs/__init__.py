"""The agent runs that a host keeps: their folders, writers, usage, sessions and logs; and the homes of agents."""
