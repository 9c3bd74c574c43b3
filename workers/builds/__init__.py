"""The builds of the workflows' code: the ids and patches of builds, and the promotion of a build."""
