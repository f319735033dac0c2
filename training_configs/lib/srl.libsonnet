// Variants of ../srl.jsonnet: with ELMo or a transformer, or other sizes.
local elmo_with = import 'elmo.libsonnet';

function(
  elmo_at=[],
  // What differs from ELMo's defaults: see elmo.libsonnet.
  elmo={},
  // Units of each of the LSTMs.
  hidden=300,
) (
  local added = elmo_with(elmo_at, { dropout: { input: 0.1, output: 0.1 }, l2: 0.001 } + elmo);

  added.added_to((import '../srl.jsonnet') { hidden:: hidden }) + {
    model+: { encoder+: { input_size+: added.input_width } },
  }
)
