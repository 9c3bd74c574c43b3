"""Builds, which are versions of the workflows' code: their ids, their patches, and their promotion."""
