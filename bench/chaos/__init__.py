"""The chaos program: work orders under random kills, and the evidence of git, forge and system."""
