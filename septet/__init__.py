"""The core of Septet: everything that does not use Temporal."""
