"""What Septet needs of the machine: processes, disks, locks, durable files, and safe texts."""
