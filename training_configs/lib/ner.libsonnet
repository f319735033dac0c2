// Named entities: section A.7 of the paper.
local environment = import 'environment.libsonnet';
local text_with = import 'text.libsonnet';

function(
  elmo_at=[],
  // What differs from ELMo's defaults: see text.libsonnet.
  elmo={},
  // The folder of the data.
  data='ner',
) (
  local text = text_with(
    elmo_at,
    // Large enough to keep the weights nearly equal.
    { l2: 0.1 } + elmo,
    // Differs from the paper: GloVe instead of Senna's vectors.
    tune_glove=true,
    characters={ dim: 16, filters: 128, widths: [3] },
  );
  local lstm(input_size, hidden) = { type: 'elmo_lstm', input_size: input_size, hidden_size: hidden, bidirectional: true };

  environment.files(data + '/%s.txt') + {
    dataset_reader: { type: 'elmo_ner', token_indexers: text.token_indexers },
    vocabulary: text.vocabulary,
    model: {
      type: 'elmo_ner',
      encoders: [lstm(text.input_width, 200), lstm(2 * 200, 100)],
      dropout: 0.5,
    } + text.model,
    data_loader: { batch_sampler: { type: 'bucket', batch_size: 64 } },
    trainer: {
      optimizer: { type: 'elmo_fused_adam', lr: 0.001 },
      validation_metric: '+f1-measure-overall',
      num_epochs: 75,
      patience: 25,
      grad_norm: 5.0,
    } + text.trainer,
  }
)
