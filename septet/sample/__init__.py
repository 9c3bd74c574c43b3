"""The sample repository of `septet demo`: small, real, with a bug, a failing test and an issue."""
