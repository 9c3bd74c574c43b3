"""The faces: the typed client and the `septet` command."""
