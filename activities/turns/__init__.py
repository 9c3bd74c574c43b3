"""A turn of an agent: prepared, paid for, guarded and carried out."""
