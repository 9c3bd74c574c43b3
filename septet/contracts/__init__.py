"""The values that cross the wire: immutable, strict, and the same for every interface."""
