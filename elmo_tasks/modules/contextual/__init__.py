"""Models that compute the layers of words in context: the biLM or a transformer."""
