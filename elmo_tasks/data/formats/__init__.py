"""File formats of data sets, read without AllenNLP's instances."""

from elmo_tasks.data.formats.lm_text import LmText
from elmo_tasks.data.formats.wsd_corpus import WsdCorpus, WsdInstance, WsdSentence

__all__ = ["LmText", "WsdCorpus", "WsdInstance", "WsdSentence"]
