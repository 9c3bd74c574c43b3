"""The janitor: how long a host keeps workspaces, runs, snapshots and mirrors, and their removal."""
