"""The proxy, a guest's only way to the network: its rules, its ports for models, and its log."""
