// Named entities: section A.7 of the paper.
local environment = import 'environment.libsonnet';
local text_with = import 'text.libsonnet';

// Units of each direction of the two biLSTMs.
local hidden = [200, 100];

function(
  elmo_at=[],
  // What differs from ELMo's defaults: see text.libsonnet.
  elmo={},
) (
  local text = text_with(
    elmo_at,
    // Large enough to keep the weights nearly equal.
    { l2: 0.1 } + elmo,
    // Differs from the paper: GloVe instead of Senna's vectors.
    tune_glove=true,
    characters={ dim: 16, filters: 128, width: 3 },
  );
  local widths = [text.input_width] + [2 * units for units in hidden];

  {
    dataset_reader: { type: 'elmo_ner', token_indexers: text.token_indexers },
    train_data_path: environment.data('ner/train.txt'),
    validation_data_path: environment.data('ner/dev.txt'),
    test_data_path: environment.data('ner/test.txt'),
    vocabulary: text.vocabulary,
    model: {
      type: 'elmo_ner',
      encoders: [
        {
          type: 'elmo_lstm',
          input_size: widths[layer],
          hidden_size: hidden[layer],
          bidirectional: true,
        }
        for layer in std.range(0, std.length(hidden) - 1)
      ],
      dropout: 0.5,
    } + text.model,
    data_loader: {
      batch_sampler: { type: 'bucket', batch_size: 64 },
    },
    trainer: {
      optimizer: { type: 'elmo_fused_adam', lr: 0.001 },
      validation_metric: '+f1-measure-overall',
      num_epochs: 75,
      patience: 25,
      grad_norm: 5.0,
    } + text.trainer,
  }
)
