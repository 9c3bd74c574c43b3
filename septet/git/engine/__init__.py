"""Run git: its processes, and the remotes, addresses, configuration, packs and locks that the engine needs."""
