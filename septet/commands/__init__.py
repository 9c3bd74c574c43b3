"""The commands, which are the prompt files of the steps: built-in files, and code that loads and fills files."""
