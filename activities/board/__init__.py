"""The activities of boards, intakes, comments, pull requests, trackers and budget accounts."""
