"""The workflows that start work orders: passes of an intake, comments, sessions of a tracker."""
