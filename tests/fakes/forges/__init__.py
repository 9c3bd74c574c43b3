"""Forges on loopback: real HTTP, state, refusals in the real forges' words, and git over smart HTTP."""
