"""The page on which people try ELMo: what computes is apart from what shows it."""
