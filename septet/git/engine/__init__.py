"""Run git, with the remotes, addresses, configuration, packs and locks that Septet needs for it."""
