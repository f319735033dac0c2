// Semantic roles: section A.5 of the paper.
local environment = import 'environment.libsonnet';
local text_with = import 'text.libsonnet';

// Width of the vector that marks whether a word is the predicate.
local predicate = 100;

function(
  elmo_at=[],
  // What differs from ELMo's defaults: see text.libsonnet.
  elmo={},
  // Units of each of the LSTMs.
  hidden=300,
) (
  local text = text_with(elmo_at, { dropout: { input: 0.1, output: 0.1 }, l2: 0.001 } + elmo, tune_glove=true);

  environment.files('srl/%s') + {
    dataset_reader: { type: 'elmo_srl', token_indexers: text.token_indexers },
    vocabulary: text.vocabulary,
    model: {
      type: 'elmo_srl',
      predicate_dim: predicate,
      encoder: {
        type: 'elmo_alternating_highway_lstm',
        input_size: text.input_width + predicate,
        hidden_size: hidden,
        num_layers: 8,
        recurrent_dropout_probability: 0.1,
        use_input_projection_bias: false,
      },
      initializer: { regexes: [['tag_projection\\.weight', { type: 'orthogonal' }]] },
    } + text.model,
    data_loader: { batch_sampler: { type: 'bucket', batch_size: 80 } },
    trainer: {
      optimizer: { type: 'adadelta', lr: 1.0, rho: 0.95 },
      validation_metric: '+f1',
      num_epochs: 500,
      patience: 200,
      // Clips the values of the gradient, not its norm.
      grad_clipping: 1.0,
    } + text.trainer,
  }
)
