"""Print work orders and the board to a terminal or a pipe, once or live."""
