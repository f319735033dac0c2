"""How the Penn Treebank writes what is read otherwise elsewhere, in the text of a biLM too."""

__all__ = ["TREEBANK_WORDS"]

TREEBANK_WORDS = {
    "-LRB-": "(",
    "-RRB-": ")",
    "-LSB-": "[",
    "-RSB-": "]",
    "-LCB-": "{",
    "-RCB-": "}",
    "``": '"',
    "''": '"',
}
"""From the treebank's word to the other."""
