"""What the engine asks of the machine: processes, disks, locks, durable writes, printable text."""
