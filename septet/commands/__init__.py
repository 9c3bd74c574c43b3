"""The built-in commands (the prompt files of the steps), and the code that loads and fills commands."""
