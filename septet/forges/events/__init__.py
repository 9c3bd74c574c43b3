"""What happens on issues and pull requests, as webhooks or polls report it."""
