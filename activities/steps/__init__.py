"""The proofs of the steps: how Septet checks what an agent claims, and does the parts that are left to Septet."""
