"""The `septet` command, which imports only the modules of the subcommand that runs."""
