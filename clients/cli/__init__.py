"""The `septet` command. Each command imports its modules on their first use."""
