"""A guest's only way to the network: rules, the model's port, and what is recorded of both."""
