"""LSTMs and GRUs over packed sentences: AllenNLP's `lstm` and `gru`, trained faster on a CPU."""
