"""Events on issues and pull requests, from webhooks and from polls."""
