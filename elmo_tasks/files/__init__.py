"""Atomic writing of files, and reading with errors that name the file."""
