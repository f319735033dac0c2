// Sentiment in five classes: the biattentive classification network, without ELMo.
//
// paper: section A.8, baseline of Table 1
// data:  sst/{train,dev,test}.txt; SST-5 in the paper and here
// score: test accuracy 45.9 here (5 seeds with hidden=150), 51.4 in the paper
// time:  up to 70 minutes per seed on one thread of an AMD EPYC
// see:   docs/tasks/sst.md; as plain JSON, expanded/sst.json
local environment = import 'lib/environment.libsonnet';

local glove = environment.glove;  // GloVe vectors: file and width.

{
  // Units of each direction of the LSTMs, and of the layer before them.
  hidden:: 300,

  dataset_reader: {
    type: 'elmo_sst',
    token_indexers: { tokens: { type: 'single_id', lowercase_tokens: true } },
    // Trains on phrases of four words or more, too.
    min_phrase_length: 4,
  },
  // Only whole sentences are scored.
  validation_dataset_reader: {
    type: 'elmo_sst',
    token_indexers: { tokens: { type: 'single_id', lowercase_tokens: true } },
  },
  train_data_path: environment.data('sst/train.txt'),
  validation_data_path: environment.data('sst/dev.txt'),
  test_data_path: environment.data('sst/test.txt'),
  vocabulary: {
    pretrained_files: { tokens: glove.file },
    // -1: all words of the file, because test data may contain any of them.
    min_pretrained_embeddings: { tokens: -1 },
  },
  model: {
    type: 'elmo_sst',
    text_field_embedder: {
      token_embedders: {
        tokens: {
          type: 'embedding',
          embedding_dim: glove.width,
          pretrained_file: glove.file,
          trainable: false,
        },
      },
    },
    embedding_dropout: 0.5,
    pre_encode_feedforward: {
      input_dim: glove.width,
      num_layers: 1,
      hidden_dims: $.hidden,
      activations: 'relu',
      dropout: 0.25,
    },
    encoder: {
      type: 'elmo_lstm',
      input_size: $.hidden,
      hidden_size: $.hidden,
      bidirectional: true,
    },
    integrator: {
      type: 'elmo_lstm',
      // A word, and its difference from and product with its attended words.
      input_size: 3 * 2 * $.hidden,
      hidden_size: $.hidden,
      bidirectional: true,
    },
    integrator_dropout: 0.1,
    output_feedforward: {
      // Maximum, minimum, mean and self-attention.
      input_dim: 4 * 2 * $.hidden,
      num_layers: 2,
      hidden_dims: [4 * $.hidden, 2 * $.hidden],
      activations: 'relu',
      dropout: [0.2, 0.3],
    },
  },
  data_loader: { batch_sampler: { type: 'bucket', batch_size: 100 } },
  trainer: {
    optimizer: { type: 'elmo_fused_adam', lr: 0.0001 },
    validation_metric: '+accuracy',
    num_epochs: 40,
    patience: 5,
    grad_norm: 5.0,
    checkpointer: { type: 'elmo_frozen_once' },
  },
}
