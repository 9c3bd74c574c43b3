"""Everything that Septet does with git: mirrors and workspaces, vaults and snapshots, evidence."""
