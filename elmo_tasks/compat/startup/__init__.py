"""The start of `allennlp`: plugins, versions, and the time that imports take."""
