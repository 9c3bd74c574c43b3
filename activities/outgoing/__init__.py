"""What is about to leave a host: searched, cleaned, and read by a second agent."""
