"""How a command prints and ends: streams, console, pager, exit codes and signals."""
