// Variants of ../snli.jsonnet: with ELMo or a transformer, or other sizes.
local elmo_with = import 'elmo.libsonnet';

function(
  elmo_at=[],
  // What differs from ELMo's defaults: see elmo.libsonnet.
  elmo={},
  // With ELMo the model is larger, and the paper regularises it more.
  attention_dropout=if elmo_at == [] then 0 else 0.5,
  weight_l2=if elmo_at == [] then 0 else 0.0001,
  // Units of each direction of the LSTMs, and of the fully connected layers.
  hidden=300,
) (
  // The model has dropout at the input of the encoder, and after the attention.
  local defaults = { layer_norm: 'token', dropout: { input: 0, output: 0 }, l2: 0.001 };
  local added = elmo_with(elmo_at, defaults + elmo);
  local weights =
    '^((inference_)?encoder|(projection|output)_feedforward|label_projection)\\..*weight';

  added.added_to((import '../snli.jsonnet') { hidden:: hidden }) + {
    model+: {
      encoder+: { input_size+: added.input_width },
      projection_feedforward+: { input_dim+: 4 * added.output_width },
      attention_dropout: attention_dropout,
      [if weight_l2 > 0 then 'regularizer']+: {
        regexes+: [[weights, { type: 'l2', alpha: weight_l2 }]],
      },
    },
  }
)
