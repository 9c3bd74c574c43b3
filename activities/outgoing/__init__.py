"""Check all content that leaves for a forge, mask keys in its texts, and give it to the reader."""
