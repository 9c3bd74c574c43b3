"""The machine for the engine: processes, disks, locks, durable writes, printable text."""
