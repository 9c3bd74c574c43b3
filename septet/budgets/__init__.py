"""Budget accounts, which permit turns and count their use; and a host's notes of use that it has not reported."""
