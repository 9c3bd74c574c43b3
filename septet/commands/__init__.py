"""The prompt files of the steps: loaded, checked and filled. The built-in files are next to this module."""
