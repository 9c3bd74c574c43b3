"""The proofs of the steps: each checks what an agent claims, and does the part of the step that Septet does."""
