"""The workflows that start work orders: passes of an intake, commands in comments, sessions of a tracker."""
