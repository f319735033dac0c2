// Parts of speech: words, characters and a biLSTM, with ELMo.
//
// paper: a better tagger than its classifier, pos_layer.jsonnet
// data:  pos/{train,dev,test}.conllu, such as UD English EWT
// score: the included model, which learns both columns of tags (tools/pos_both_elmo.jsonnet),
//        has a test accuracy of 95.5 for the Penn Treebank's tags
// see:   docs/tasks/pos.md; as plain JSON, expanded/pos_elmo.json
local environment = import 'lib/environment.libsonnet';

local glove = environment.glove;  // GloVe vectors: file and width.
local bilm = environment.bilm;  // Options, weights, indexer, and the width of the vectors.
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
      elmo: bilm.indexer,
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
        // The paper's mix of the biLM's layers.
        elmo: {
          type: 'elmo',
          layers: 'mix',
          layer_norm: null,
          dropout: 0,
          bilm: bilm,
        },
      },
    },
    encoder: {
      type: 'elmo_lstm',
      input_size: glove.width + characters.filters + bilm.width,
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
