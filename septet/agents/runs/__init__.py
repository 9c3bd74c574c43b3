"""The agent runs that a host keeps: their folders, their writers, their usage, and their sessions."""
