// Sentiment in five classes: section A.8 of the paper.
local environment = import 'environment.libsonnet';
local text_with = import 'text.libsonnet';

function(
  elmo_at=[],
  // What differs from ELMo's defaults: see text.libsonnet.
  elmo={},
  // The length in tokens of the shortest phrases to train on.
  min_phrase_length=4,
  // Units of each direction of the LSTMs, and of the layer before them.
  hidden=300,
) (
  local text = text_with(elmo_at, { l2: 0.001 } + elmo);
  local encoded_width = 2 * hidden + text.output_width;
  local lstm(input_size) = { type: 'elmo_lstm', input_size: input_size, hidden_size: hidden, bidirectional: true };
  local reader = { type: 'elmo_sst', token_indexers: text.token_indexers };

  environment.files('sst/%s.txt') + {
    dataset_reader: reader { min_phrase_length: min_phrase_length },
    validation_dataset_reader: reader,
    vocabulary: text.vocabulary,
    model: {
      type: 'elmo_sst',
      embedding_dropout: 0.5,
      pre_encode_feedforward: {
        input_dim: text.input_width,
        num_layers: 1,
        hidden_dims: hidden,
        activations: 'relu',
        dropout: 0.25,
      },
      encoder: lstm(hidden),
      integrator: lstm(3 * encoded_width),
      integrator_dropout: 0.1,
      output_feedforward: {
        // Maximum, minimum, mean and self-attention.
        input_dim: 4 * 2 * hidden,
        num_layers: 2,
        hidden_dims: [4 * hidden, 2 * hidden],
        activations: 'relu',
        dropout: [0.2, 0.3],
      },
    } + text.model,
    data_loader: { batch_sampler: { type: 'bucket', batch_size: 100 } },
    trainer: {
      optimizer: { type: 'elmo_fused_adam', lr: 0.0001 },
      validation_metric: '+accuracy',
      num_epochs: 40,
      patience: 5,
      grad_norm: 5.0,
    } + text.trainer,
  }
)
