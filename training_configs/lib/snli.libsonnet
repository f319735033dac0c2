// Entailment: section A.3 of the paper.
local environment = import 'environment.libsonnet';
local text_with = import 'text.libsonnet';

function(
  elmo_at=[],
  // What differs from ELMo's defaults: see text.libsonnet.
  elmo={},
  // With ELMo the model is larger, and the paper regularises it more.
  attention_dropout=if elmo_at == [] then 0 else 0.5,
  weight_l2=if elmo_at == [] then 0 else 0.0001,
  // Units of each direction of the LSTMs, and of the fully connected layers.
  hidden=300,
) (
  // The model has dropout at the input of the encoder, and after the attention.
  local text = text_with(elmo_at, { layer_norm: 'token', dropout: { input: 0, output: 0 }, l2: 0.001 } + elmo);
  local encoded_width = 2 * hidden + text.output_width;
  local lstm(input_size) = { type: 'elmo_lstm', input_size: input_size, hidden_size: hidden, bidirectional: true };
  local layer(input_dim) = { input_dim: input_dim, num_layers: 1, hidden_dims: hidden, activations: 'relu' };

  environment.files('snli/%s.jsonl') + {
    dataset_reader: { type: 'elmo_snli', token_indexers: text.token_indexers },
    vocabulary: text.vocabulary,
    model: {
      type: 'elmo_snli',
      encoder: lstm(text.input_width),
      projection_feedforward: layer(4 * encoded_width),
      inference_encoder: lstm(hidden),
      // Mean and maximum of each of the two sentences.
      output_feedforward: layer(4 * 2 * hidden),
      dropout: 0.5,
      attention_dropout: attention_dropout,
    } + text.model + {
      [if weight_l2 > 0 then 'regularizer']+: {
        regexes+: [['^((inference_)?encoder|(projection|output)_feedforward|label_projection)\\..*weight', { type: 'l2', alpha: weight_l2 }]],
      },
    },
    data_loader: { batch_sampler: { type: 'bucket', batch_size: 32, sorting_keys: ['premise', 'hypothesis'] } },
    trainer: {
      optimizer: { type: 'elmo_fused_adam', lr: 0.0004 },
      // Halved after each epoch without a better score.
      learning_rate_scheduler: { type: 'reduce_on_plateau', factor: 0.5, mode: 'max', patience: 0 },
      validation_metric: '+accuracy',
      num_epochs: 75,
      patience: 5,
      grad_norm: 5.0,
    } + text.trainer,
  }
)
