"""
What a file of somebody else may do, which is what is listed: `load_archive` reads archives as data.

- `loader` opens an archive; `unpacking`, `config_files` and `weights` read the files in it, and
  `repositories` the configs of transformers that it names.
- `current_archive` has the archive that is being loaded, and whether it is trusted.
- `walk` compares a config with the lists: `harmless.toml`, and `HARMLESS` of plugins.
- `options` has what a command, or a call in Python, needs to trust an archive.

The check is in the function that reads, so it cannot be missing. What AllenNLP's own functions
would do with a harmless config is closed by `guards`, which `ALLENNLP_TODAY_WITHOUT` does not
switch off. `import torch` imports `loader`, `guards` and `options`, so they import only the
standard library.
"""

from allennlp_today.trust.config_files import read_config
from allennlp_today.trust.current_archive import is_untrusted, loading, reading_from, refuse_outside
from allennlp_today.trust.loader import load_archive
from allennlp_today.trust.options import add_trust, has_trust_option

__all__ = ["add_trust", "has_trust_option", "is_untrusted", "load_archive", "loading"]
__all__ += ["read_config", "reading_from", "refuse_outside"]
