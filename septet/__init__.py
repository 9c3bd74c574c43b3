"""The core of Septet: all that can be said without Temporal."""
