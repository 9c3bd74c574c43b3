"""What a host keeps of agent runs: their folders, who writes, what they used, and the sessions that they leave."""
