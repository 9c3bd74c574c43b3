"""What an agent wrote and a forge gets: cleaned of what acts there in the worker's name, or is seen by nobody."""
