"""Files: written whole, with checksums, and read with errors that name them."""
