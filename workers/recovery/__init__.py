"""What a worker that died left behind: its activities, agents and turns are taken over."""
