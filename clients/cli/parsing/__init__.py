"""From words to a command and its options: parser, help, usage errors, completion."""
