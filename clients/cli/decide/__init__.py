"""The commands of decisions: approve, reject, cancel, move, retry and budget."""
