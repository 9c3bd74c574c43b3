"""git as the engine uses it: mirror and workspace, vault and snapshots, evidence."""
