"""Mention spans and their antecedents, for coreference (Lee et al. 2017)."""

__all__: list[str] = []
