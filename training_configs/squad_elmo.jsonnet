// Questions about a passage: the model of Clark and Gardner (2017), with ELMo.
//
// paper: section A.4, Table 1; ELMo is at the input and the output of its shared biGRU
// data:  squad/{train,dev}.json; 87,599 questions of SQuAD 1.1 in the paper, 9,231 here
// score: dev F1 69.1 here (3 seeds), 85.8 in the paper
// time:  up to 59 minutes per seed on one thread of an AMD EPYC
// see:   docs/tasks/squad.md; as plain JSON, expanded/squad_elmo.json
local environment = import 'lib/environment.libsonnet';

local glove = environment.glove;  // GloVe vectors: file and width.
local bilm = environment.bilm;  // Options, weights, indexer, and the width of the vectors.
local characters = { dim: 20, filters: 100, width: 5 };
// Units of each direction of the biGRUs.
local hidden = 90;

local token_indexers = {
  // Differs from the paper, which uses the cased GloVe 840B: the included vectors and GloVe 6B
  // contain only lower-cased words.
  tokens: { type: 'single_id', lowercase_tokens: true },
  token_characters: { type: 'elmo_token_characters', min_padding_length: characters.width },
  elmo: bilm.indexer,
};

{
  dataset_reader: {
    type: 'elmo_squad',
    token_indexers: token_indexers,
    max_passage_tokens: 800,
  },
  validation_dataset_reader: { type: 'elmo_squad', token_indexers: token_indexers },
  // SQuAD's test set is not public.
  train_data_path: environment.data('squad/train.json'),
  validation_data_path: environment.data('squad/dev.json'),
  vocabulary: {
    pretrained_files: { tokens: glove.file },
    // -1: all words of the file, because test data may contain any of them.
    min_pretrained_embeddings: { tokens: -1 },
  },
  model: {
    type: 'elmo_squad',
    text_field_embedder: {
      token_embedders: {
        tokens: {
          type: 'embedding',
          embedding_dim: glove.width,
          pretrained_file: glove.file,
          trainable: false,
        },
        token_characters: {
          type: 'elmo_character_encoding',
          // Differs from the paper: its code drops out a fifth of the character embeddings.
          embedding: { embedding_dim: characters.dim, vocab_namespace: 'token_characters' },
          encoder: {
            type: 'elmo_cnn',
            embedding_dim: characters.dim,
            num_filters: characters.filters,
            ngram_filter_sizes: [characters.width],
            conv_layer_activation: 'relu',
            // A window may extend past the end of a word.
            partial_windows: true,
          },
        },
        // The paper's mix of the biLM's layers. Its code has dropout on ELMo at both places, in
        // addition to the dropout of the biGRU's input.
        elmo: { type: 'elmo', layers: 'mix', layer_norm: null, dropout: 0.5 },
      },
    },
    bilm: bilm,
    contextual_encoder: {
      type: 'elmo_gru',
      input_size: glove.width + characters.filters + bilm.width,
      hidden_size: hidden,
      bidirectional: true,
    },
    // ELMo again, at the output of the lowest encoder.
    output_embedder: {
      token_embedders: {
        tokens: { type: 'empty' },
        token_characters: { type: 'empty' },
        elmo: { type: 'elmo', layers: 'mix', layer_norm: null, dropout: 0.5 },
      },
    },
    self_encoder: {
      type: 'elmo_gru',
      input_size: 2 * hidden,
      hidden_size: hidden,
      bidirectional: true,
    },
    start_encoder: {
      type: 'elmo_gru',
      input_size: 2 * hidden,
      hidden_size: hidden,
      bidirectional: true,
    },
    end_encoder: {
      type: 'elmo_gru',
      // The passage, and the output of the start encoder.
      input_size: 2 * hidden + 2 * hidden,
      hidden_size: hidden,
      bidirectional: true,
    },
    dropout: 0.2,
    max_span_tokens: 17,
  },
  data_loader: {
    batch_sampler: { type: 'bucket', batch_size: 45, sorting_keys: ['passage'] },
  },
  trainer: {
    // TensorFlow's default rho, as in the paper's code, and not torch's. Differs from the paper:
    // torch's epsilon of 1e-6, where TensorFlow's is 1e-8.
    optimizer: { type: 'adadelta', lr: 1.0, rho: 0.95 },
    moving_average: { type: 'elmo_exponential', decay: 0.999 },
    validation_metric: '+f1',
    num_epochs: 24,
    checkpointer: { type: 'elmo_frozen_once' },
  },
}
