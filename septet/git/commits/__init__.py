"""The branches that Septet creates, and its commits and pushes."""
