"""The page: the board and each work order in a browser. What it decides, the HTTP API carries out."""
