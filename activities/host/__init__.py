"""What every activity needs: its host, its attempt, its fence, and the translation of errors."""
