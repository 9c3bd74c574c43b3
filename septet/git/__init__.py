"""The engine's use of git: mirrors and workspaces, vaults and snapshots, evidence."""
