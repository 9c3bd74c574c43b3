"""The branches, commits and pushes that Septet makes."""
