"""Files: written atomically, and read with errors that name them."""
