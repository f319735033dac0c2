"""What several commands print."""

from pathlib import Path

__all__ = ["print_written"]


def print_written(output: str, n_items: int, unit: str) -> None:
    """Prints the size of an output, a file or a folder: what it has, and its bytes."""
    path = Path(output)
    files = path.rglob("*") if path.is_dir() else [path]
    n_bytes = sum(file.stat().st_size for file in files)
    print(f"wrote {output}: {n_items:,} {unit}, {n_bytes:,} bytes")
