"""The janitor: what a host keeps, how long, and what may go when its time is over."""
