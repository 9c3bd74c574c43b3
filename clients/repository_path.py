"""A repository as a person names it, before a worker on another machine or in another folder reads it."""

from pathlib import Path


def whole_path(repository: str) -> str:
    """Return a path as the worker will understand it; addresses stay as they are."""
    is_path = repository.startswith((".", "/", "~"))
    looks_like_address = "://" in repository or (":" in repository and not is_path)
    return repository if looks_like_address else str(Path(repository).expanduser().absolute())
