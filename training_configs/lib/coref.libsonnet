// Coreference: section A.6 of the paper, which uses the model of Lee et al. 2017 unchanged.
local environment = import 'environment.libsonnet';
local text_with = import 'text.libsonnet';

function(
  elmo_at=[],
  // What differs from ELMo's defaults: see text.libsonnet.
  elmo={},
) (
  local text = text_with(
    elmo_at,
    // At the input, ELMo gets the dropout of all embedded words, as in the paper.
    elmo,
    // Differs from the paper: only GloVe, without Turian's vectors, and not normalised to length 1.
    characters={ dim: 8, filters: 50, widths: [3, 4, 5], partial_windows: true },
  );

  environment.files('coref/%s.conll') + {
    dataset_reader: { type: 'elmo_coref', token_indexers: text.token_indexers },
    vocabulary: text.vocabulary,
    model: {
      type: 'elmo_coref',
      encoder: { type: 'elmo_lstm', input_size: text.input_width, hidden_size: 200, bidirectional: true },
      max_span_width: 10,
      spans_per_word: 0.4,
      max_antecedents: 250,
      max_sentences: 50,
      hidden_dim: 150,
      feature_dim: 20,
      lexical_dropout: 0.5,
      dropout: 0.2,
      // TensorFlow's default, and orthogonal weights in the LSTM.
      initializer: {
        regexes: [
          ['(mention|antecedent)_scorer.*weight|span_embedder\\.head\\.weight', { type: 'xavier_uniform' }],
          ['encoder.*weight_[ih]h.*', { type: 'orthogonal' }],
        ],
      },
    } + text.model,
    data_loader: { batch_size: 1, shuffle: true },
    trainer: {
      optimizer: { type: 'adam', lr: 0.001 },
      learning_rate_scheduler: { type: 'elmo_staircase', decay_rate: 0.999, batches_per_step: 100 },
      validation_metric: '+coref_f1',
      num_epochs: 150,
      patience: 10,
      grad_norm: 5.0,
    } + text.trainer,
  }
)
