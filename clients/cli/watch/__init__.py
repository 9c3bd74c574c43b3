"""The commands that show work: watch, show, list, board, logs, costs and open."""
