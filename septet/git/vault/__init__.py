"""The vault of snapshots: objects, the ledger of a worktree, and how a snapshot's commit holds a workspace."""
