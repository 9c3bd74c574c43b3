"""The page: the board and each work order in a browser. The HTTP API carries out decisions made on the page."""
