"""Run git, and handle its remotes, addresses, configuration, packs and locks."""
