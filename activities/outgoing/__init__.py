"""Check all content that leaves for a forge, mask keys in its texts, and give the content to the reader."""
