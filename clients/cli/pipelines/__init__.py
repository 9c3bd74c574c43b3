"""The commands on pipelines, with the commands' options and output."""
