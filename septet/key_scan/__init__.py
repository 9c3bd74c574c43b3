"""Finding what looks like a key in lines that work adds, by the rules of a well-kept scanner."""
