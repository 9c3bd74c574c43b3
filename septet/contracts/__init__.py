"""The values that cross the wire: frozen, strict, and the same for every face."""
