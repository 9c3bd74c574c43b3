"""The vault: its objects, the form of a snapshot's commit, and the ledger of a worktree."""
