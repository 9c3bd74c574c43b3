"""The page: the board and each work order in a browser, for looking at. It decides nothing and changes nothing."""
