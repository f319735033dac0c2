"""The paper's tables and figures, made of runs of `allennlp train`."""
