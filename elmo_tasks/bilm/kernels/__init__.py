"""Matrix products with packed weights, and values that are computed once from frozen weights."""
