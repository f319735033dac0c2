// Relations between two names in a sentence, with ELMo and GloVe as the vectors of words.
local environment = import 'lib/environment.libsonnet';

local glove = environment.glove;  // GloVe vectors: file and width.
local bilm = environment.bilm;  // Options, weights, indexer, and the width of the vectors.

{
  dataset_reader: {
    type: 'relations',
    token_indexers: {
      tokens: { type: 'single_id', lowercase_tokens: true },
      elmo: bilm.indexer,
    },
  },
  train_data_path: 'examples/relations/relations.txt',
  validation_data_path: self.train_data_path,
  vocabulary: {
    pretrained_files: { tokens: glove.file },
    // -1: all words of the file, because texts may contain any of them.
    min_pretrained_embeddings: { tokens: -1 },
  },
  model: {
    type: 'relations',
    text_field_embedder: {
      token_embedders: {
        tokens: {
          type: 'embedding',
          embedding_dim: glove.width,
          pretrained_file: glove.file,
          trainable: false,
        },
        elmo: { type: 'elmo', layers: 'mix', layer_norm: null, dropout: 0 },
      },
    },
    bilm: bilm,
  },
  data_loader: { batch_size: 4, shuffle: true },
  trainer: {
    optimizer: { type: 'adam', lr: 0.01 },
    num_epochs: 12,
    validation_metric: '-loss',
    checkpointer: { type: 'elmo_frozen_once' },
  },
}
