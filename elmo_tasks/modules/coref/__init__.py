"""Mention spans and their antecedents, for coreference (Lee et al. 2017)."""
