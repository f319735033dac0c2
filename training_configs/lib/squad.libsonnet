// Variants of ../squad.jsonnet: with ELMo or a transformer, or cased vectors.
local elmo_with = import 'elmo.libsonnet';

function(
  elmo_at=[],
  // What differs from ELMo's defaults: see elmo.libsonnet.
  elmo={},
  // Whether words are lower-cased for GloVe: yes if the vectors are.
  lowercase=true,
) (
  // The paper's code has dropout on ELMo at both places, in addition to the dropout of the biGRU's
  // input.
  local added = elmo_with(elmo_at, { dropout: { input: 0.5, output: 0.5 } } + elmo);
  local cased = { token_indexers+: { tokens+: { lowercase_tokens: lowercase } } };

  added.added_to(import '../squad.jsonnet') + {
    dataset_reader+: cased,
    validation_dataset_reader+: cased,
    model+: { contextual_encoder+: { input_size+: added.input_width } },
  }
)
