"""Models that give the layers of words in their context: the biLM, or a transformer in its place."""
