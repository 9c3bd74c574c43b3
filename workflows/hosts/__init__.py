"""The hosts of a workspace: the activities on a host, and the consequences of a host's silence."""
