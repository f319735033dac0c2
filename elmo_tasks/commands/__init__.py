"""
Arguments and printing of both command lines: `python -m elmo_tasks` (`embed`, `annotate`, `serve`),
and `allennlp` (all others, which `elmo_tasks.plugin` imports). The work itself is done in other
packages.
"""
