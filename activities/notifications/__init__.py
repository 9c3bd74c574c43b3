"""Reports to people: comments, labels, notifications, and the session of a tracker."""
