"""The `septet` command. Each command imports what it uses when it is used."""
