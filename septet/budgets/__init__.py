"""Budget accounts, which permit turns and count their use, and a host's notes until the use is reported."""
