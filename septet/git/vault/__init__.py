"""The vault of snapshots: its objects, the ledger of a worktree, and the layout of a snapshot's commit."""
