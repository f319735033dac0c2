"""Files: written whole or not at all, and read with errors that name them."""
