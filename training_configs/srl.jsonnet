// Semantic roles: eight alternating highway LSTMs, without ELMo.
//
// paper: section A.5, baseline of Table 1
// data:  srl/{train,dev,test}/; OntoNotes in the paper, PropBank of English EWT here
// score: test F1 68.8 here (3 seeds with hidden=150), 81.4 in the paper
// time:  up to 231 minutes per seed on one thread of an AMD EPYC
// see:   docs/tasks/srl.md; as plain JSON, expanded/srl.json
local environment = import 'lib/environment.libsonnet';

local glove = environment.glove;  // GloVe vectors: file and width.
// Width of the vector that marks whether a word is the predicate.
local predicate_dim = 100;

{
  // Units of each of the LSTMs.
  hidden:: 300,

  dataset_reader: {
    type: 'elmo_srl',
    token_indexers: { tokens: { type: 'single_id', lowercase_tokens: true } },
  },
  train_data_path: environment.data('srl/train'),
  validation_data_path: environment.data('srl/dev'),
  test_data_path: environment.data('srl/test'),
  vocabulary: {
    pretrained_files: { tokens: glove.file },
    // Tuned vectors cost time and memory in every step, so only the most frequent are kept.
    min_pretrained_embeddings: { tokens: 100000 },
  },
  model: {
    type: 'elmo_srl',
    text_field_embedder: {
      token_embedders: {
        tokens: {
          type: 'embedding',
          embedding_dim: glove.width,
          pretrained_file: glove.file,
          trainable: true,
        },
      },
    },
    predicate_dim: predicate_dim,
    encoder: {
      type: 'elmo_alternating_highway_lstm',
      input_size: glove.width + predicate_dim,
      hidden_size: $.hidden,
      num_layers: 8,
      recurrent_dropout_probability: 0.1,
      use_input_projection_bias: false,
    },
    initializer: { regexes: [['tag_projection\\.weight', { type: 'orthogonal' }]] },
  },
  data_loader: { batch_sampler: { type: 'bucket', batch_size: 80 } },
  trainer: {
    optimizer: { type: 'adadelta', lr: 1.0, rho: 0.95 },
    validation_metric: '+f1',
    num_epochs: 500,
    patience: 200,
    // Clips the values of the gradient, not its norm.
    grad_clipping: 1.0,
    checkpointer: { type: 'elmo_frozen_once' },
  },
}
