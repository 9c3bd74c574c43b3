"""The `septet` command. Only the modules of the subcommand that runs are imported."""
