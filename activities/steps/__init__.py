"""The activities of the seven steps, of rounds on a pull request, and of the finalizer."""
