"""The output layer of a biLM in training, and its word list."""
