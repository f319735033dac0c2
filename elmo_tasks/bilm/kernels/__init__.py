"""Matrix products with packed weights, the LSTM's cell on a GPU, and values computed once from frozen weights."""
