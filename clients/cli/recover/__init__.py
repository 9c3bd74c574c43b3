"""The commands that recover work: rescue, docs and host-gone."""
