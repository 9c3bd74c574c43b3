"""Forges on loopback: real HTTP, with state, refusals as the real ones word them, and git over smart HTTP."""
