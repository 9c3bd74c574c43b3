"""Run git, and handle git's remotes, addresses, configuration, packs and locks."""
