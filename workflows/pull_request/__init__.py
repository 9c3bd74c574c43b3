"""The watch over a pull request, and the rounds that answer its reviews and checks."""
