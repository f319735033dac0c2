// Variants of ../pos.jsonnet: with ELMo or a transformer, other tags, or another size.
local elmo_with = import 'elmo.libsonnet';

function(
  // [] or ['input'].
  elmo_at=[],
  // What differs from ELMo's defaults: see elmo.libsonnet.
  elmo={},
  // Which column of CoNLL-U: 'xpos', 'upos', or 'both'.
  tags='xpos',
  // Units of each direction of the biLSTM.
  hidden=200,
) (
  local added = elmo_with(elmo_at, elmo);
  assert added.output_width == 0 : "elmo_at: expected [] or ['input'], got %s" % [elmo_at];
  local config = added.added_to(import '../pos.jsonnet');

  config {
    dataset_reader+: { tags: tags },
    model+: {
      // The biLM is inside its only embedder.
      [if elmo_at != [] then 'bilm']:: null,
      [if elmo_at != [] then 'text_field_embedder']+: {
        token_embedders+: { elmo+: { bilm: config.model.bilm } },
      },
      encoder+: { input_size+: added.input_width, hidden_size: hidden },
    },
  }
)
