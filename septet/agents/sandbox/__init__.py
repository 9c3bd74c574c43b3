"""Find and try bubblewrap, and connect to the supervisors that start guests."""
