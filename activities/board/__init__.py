"""Activities for the board, intakes, comments, pull requests, trackers and the accounts of budgets."""
