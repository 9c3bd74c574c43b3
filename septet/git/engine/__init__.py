"""git itself: its programs, remotes, addresses and configuration, as the engine runs them."""
