"""The proofs of the steps: each checks what an agent claims, and does Septet's part of the step."""
