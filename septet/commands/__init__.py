"""The prompt files of the steps: loaded, checked and filled. The built-in ones lie beside this module."""
