"""The paper's tables and figures, made from runs of `allennlp train`."""
