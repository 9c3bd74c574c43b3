"""What agents have cost, and estimates for new work orders."""
