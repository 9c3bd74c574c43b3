"""What Septet needs of the machine: processes, disks, locks, durable writes, and printable text."""
