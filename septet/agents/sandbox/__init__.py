"""Find and try bubblewrap, and reach the supervisors that start guests."""
