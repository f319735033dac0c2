// Variants of ../coref.jsonnet: with ELMo or a transformer.
local elmo_with = import 'elmo.libsonnet';

function(
  elmo_at=[],
  // What differs from ELMo's defaults: see elmo.libsonnet.
  elmo={},
) (
  // At the input, ELMo gets the dropout of all embedded words, as in the paper.
  local added = elmo_with(elmo_at, elmo);

  added.added_to(import '../coref.jsonnet') + {
    model+: { encoder+: { input_size+: added.input_width } },
  }
)
