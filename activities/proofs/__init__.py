"""The proofs of the steps: a module for each step, and the table of all proofs."""
