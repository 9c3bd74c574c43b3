"""The commands that decide about work and recover it: approve to budget, pr and issue, rescue and docs."""
