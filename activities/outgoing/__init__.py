"""Check and clean all content before it leaves for a forge, and give it to the reader."""
