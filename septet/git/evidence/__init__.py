"""An agent's changes as git reports them, and the checks before they leave this host."""
