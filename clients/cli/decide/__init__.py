"""The commands that decide about work: approve, reject, cancel, move, retry and budget."""
