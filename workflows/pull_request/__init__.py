"""Watch a completed work order's pull request, and let an agent answer its reviews and checks in rounds."""
