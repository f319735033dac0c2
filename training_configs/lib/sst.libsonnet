// Variants of ../sst.jsonnet: with ELMo or a transformer, or other sizes.
local elmo_with = import 'elmo.libsonnet';

function(
  elmo_at=[],
  // What differs from ELMo's defaults: see elmo.libsonnet.
  elmo={},
  // The length in tokens of the shortest phrases to train on.
  min_phrase_length=4,
  // Units of each direction of the LSTMs, and of the layer before them.
  hidden=300,
) (
  local added = elmo_with(elmo_at, { l2: 0.001 } + elmo);

  added.added_to((import '../sst.jsonnet') { hidden:: hidden }) + {
    dataset_reader+: { min_phrase_length: min_phrase_length },
    model+: {
      pre_encode_feedforward+: { input_dim+: added.input_width },
      integrator+: { input_size+: 3 * added.output_width },
    },
  }
)
