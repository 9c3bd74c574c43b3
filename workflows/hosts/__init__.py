"""Run activities on the host of a workspace, and react if the host is silent."""
