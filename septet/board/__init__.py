"""The rules of the board: find the work orders that begin next, and the work orders that would wait forever."""
