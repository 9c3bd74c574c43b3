"""What agents have cost, and what a work order will cost by that."""
