"""An agent's changes as git reports them, and the checks of these changes before they leave this host."""
