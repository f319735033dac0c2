// Parts of speech: words, characters and a biLSTM, without ELMo.
//
// paper: a better tagger than its classifier, pos_layer.jsonnet
// data:  pos/{train,dev,test}.conllu, such as UD English EWT
// score: no published run
// see:   docs/tasks/pos.md; as plain JSON, expanded/pos.json
local environment = import 'lib/environment.libsonnet';

local glove = environment.glove;  // GloVe vectors: file and width.
local characters = { dim: 16, filters: 128, width: 3 };

{
  dataset_reader: {
    type: 'elmo_pos',
    // Which column of CoNLL-U: 'xpos', 'upos', or 'both'.
    tags: 'xpos',
    token_indexers: {
      tokens: { type: 'single_id', lowercase_tokens: true },
      token_characters: {
        type: 'elmo_token_characters',
        min_padding_length: characters.width,
      },
    },
  },
  train_data_path: environment.data('pos/train.conllu'),
  validation_data_path: environment.data('pos/dev.conllu'),
  test_data_path: environment.data('pos/test.conllu'),
  vocabulary: {
    pretrained_files: { tokens: glove.file },
    // Tuned vectors cost time and memory in every step, so only the most frequent are kept.
    min_pretrained_embeddings: { tokens: 100000 },
  },
  model: {
    type: 'elmo_pos',
    text_field_embedder: {
      token_embedders: {
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
    encoder: {
      type: 'elmo_lstm',
      input_size: glove.width + characters.filters,
      hidden_size: 200,
      bidirectional: true,
    },
  },
  data_loader: { batch_sampler: { type: 'bucket', batch_size: 64 } },
  trainer: {
    optimizer: { type: 'elmo_fused_adam', lr: 0.001 },
    validation_metric: '+accuracy',
    num_epochs: 30,
    patience: 4,
    grad_norm: 5.0,
    checkpointer: { type: 'elmo_frozen_once' },
  },
}
