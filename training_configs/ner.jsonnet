// Named entities: two biLSTMs and a CRF, without ELMo.
//
// paper: section A.7, baseline of Table 1
// data:  ner/{train,dev,test}.txt; CoNLL-2003 in the paper, WNUT-17 here
// score: test F1 30.3 here (5 seeds), 90.15 in the paper
// time:  up to 17 minutes per seed on one thread of an AMD EPYC
// see:   docs/tasks/ner.md; as plain JSON, expanded/ner.json
local environment = import 'lib/environment.libsonnet';

local glove = environment.glove;  // GloVe vectors: file and width.
local characters = { dim: 16, filters: 128, width: 3 };

{
  dataset_reader: {
    type: 'elmo_ner',
    token_indexers: {
      tokens: { type: 'single_id', lowercase_tokens: true },
      token_characters: {
        type: 'elmo_token_characters',
        min_padding_length: characters.width,
      },
    },
  },
  train_data_path: environment.data('ner/train.txt'),
  validation_data_path: environment.data('ner/dev.txt'),
  test_data_path: environment.data('ner/test.txt'),
  vocabulary: {
    pretrained_files: { tokens: glove.file },
    // Tuned vectors cost time and memory in every step, so only the most frequent are kept.
    min_pretrained_embeddings: { tokens: 100000 },
  },
  model: {
    type: 'elmo_ner',
    text_field_embedder: {
      token_embedders: {
        // Differs from the paper: GloVe instead of Senna's vectors.
        tokens: {
          type: 'embedding',
          embedding_dim: glove.width,
          pretrained_file: glove.file,
          trainable: true,
        },
        token_characters: {
          type: 'elmo_character_encoding',
          embedding: { embedding_dim: characters.dim, vocab_namespace: 'token_characters' },
          encoder: {
            type: 'elmo_cnn',
            embedding_dim: characters.dim,
            num_filters: characters.filters,
            ngram_filter_sizes: [characters.width],
            conv_layer_activation: 'relu',
          },
        },
      },
    },
    encoders: [
      {
        type: 'elmo_lstm',
        input_size: glove.width + characters.filters,
        hidden_size: 200,
        bidirectional: true,
      },
      { type: 'elmo_lstm', input_size: 2 * 200, hidden_size: 100, bidirectional: true },
    ],
    dropout: 0.5,
  },
  data_loader: { batch_sampler: { type: 'bucket', batch_size: 64 } },
  trainer: {
    optimizer: { type: 'elmo_fused_adam', lr: 0.001 },
    validation_metric: '+f1-measure-overall',
    num_epochs: 75,
    patience: 25,
    grad_norm: 5.0,
    checkpointer: { type: 'elmo_frozen_once' },
  },
}
