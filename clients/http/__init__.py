"""The HTTP API: the same operations and replies as every other face, under the paths that scripts know."""
