"""Subcommands of finished runs: tables, figures, a report, a comparison."""

__all__: list[str] = []
