"""Words that the Penn Treebank escapes: brackets and quotes, which ordinary text and the text of a biLM do not."""

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
"""From the word of the treebank to that of ordinary text."""
