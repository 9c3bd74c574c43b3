"""An agent that is a program which the user configures."""
