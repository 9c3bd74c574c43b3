"""Work orders, pipelines and the board as people read them in a terminal or a pipe."""
