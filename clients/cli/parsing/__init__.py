"""The command line: parser, help, usage errors, completion."""
