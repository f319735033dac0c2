"""
What newer versions of Python, torch, transformers and others broke in AllenNLP 2.10.1, and what it
never did well: one function per symptom. Each can be switched off, and nothing here protects from a
file: that is in `allennlp_today.trust`.

`import torch` imports these modules, so they import only the standard library.
"""
