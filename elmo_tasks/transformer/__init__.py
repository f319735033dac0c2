"""Transformers where the biLM is: checkpoints of the library `transformers`, their word pieces and their layers."""

__all__: list[str] = []
