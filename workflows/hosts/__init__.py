"""The hosts of a workspace: the activities there, and the consequences of a host's silence."""
