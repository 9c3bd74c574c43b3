"""The text of work orders, pipelines and the board for a terminal or a pipe, once or live."""
