"""What happens on issues and pull requests, whether a forge tells of it or is asked."""
