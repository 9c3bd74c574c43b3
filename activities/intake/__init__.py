"""The activities of intakes, comment commands and trackers, which turn issues into work orders."""
