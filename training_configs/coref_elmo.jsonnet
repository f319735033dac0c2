// Coreference: the model of Lee et al. (2017), with ELMo.
//
// paper: section A.6, Table 1; ELMo is at the input
// data:  coref/{train,dev,test}.conll; OntoNotes in the paper, LitBank here
// score: mean test F1 60.8 here (3 seeds), 70.4 in the paper
// time:  up to 163 minutes per seed on one thread of an AMD EPYC or Intel Xeon
// see:   docs/tasks/coref.md; as plain JSON, expanded/coref_elmo.json
local environment = import 'lib/environment.libsonnet';

local glove = environment.glove;  // GloVe vectors: file and width.
local bilm = environment.bilm;  // Options, weights, indexer, and the width of the vectors.
local characters = { dim: 8, filters: 50, widths: [3, 4, 5] };

{
  dataset_reader: {
    type: 'elmo_coref',
    token_indexers: {
      tokens: { type: 'single_id', lowercase_tokens: true },
      token_characters: { type: 'elmo_token_characters', min_padding_length: 5 },
      elmo: bilm.indexer,
    },
  },
  train_data_path: environment.data('coref/train.conll'),
  validation_data_path: environment.data('coref/dev.conll'),
  test_data_path: environment.data('coref/test.conll'),
  vocabulary: {
    pretrained_files: { tokens: glove.file },
    // -1: all words of the file, because test data may contain any of them.
    min_pretrained_embeddings: { tokens: -1 },
  },
  model: {
    type: 'elmo_coref',
    text_field_embedder: {
      token_embedders: {
        // Differs from the paper: only GloVe, without Turian's vectors, and not normalised to
        // length 1.
        tokens: {
          type: 'embedding',
          embedding_dim: glove.width,
          pretrained_file: glove.file,
          trainable: false,
        },
        token_characters: {
          type: 'elmo_character_encoding',
          embedding: { embedding_dim: characters.dim, vocab_namespace: 'token_characters' },
          encoder: {
            type: 'elmo_cnn',
            embedding_dim: characters.dim,
            num_filters: characters.filters,
            ngram_filter_sizes: characters.widths,
            conv_layer_activation: 'relu',
            // A window may extend past the end of a word.
            partial_windows: true,
          },
        },
        // The paper's mix of the biLM's layers. It gets the dropout of all embedded words.
        elmo: { type: 'elmo', layers: 'mix', layer_norm: null, dropout: 0 },
      },
    },
    bilm: bilm,
    encoder: {
      type: 'elmo_lstm',
      input_size: glove.width + 3 * characters.filters + bilm.width,
      hidden_size: 200,
      bidirectional: true,
    },
    max_span_width: 10,
    spans_per_word: 0.4,
    max_antecedents: 250,
    max_sentences: 50,
    hidden_dim: 150,
    feature_dim: 20,
    lexical_dropout: 0.5,
    dropout: 0.2,
    // TensorFlow's default for the scorers and the head, and orthogonal weights in the LSTM.
    initializer: {
      regexes: [
        [
          '(mention|antecedent)_scorer.*weight|span_embedder\\.head\\.weight',
          { type: 'xavier_uniform' },
        ],
        ['encoder.*weight_[ih]h.*', { type: 'orthogonal' }],
      ],
    },
  },
  data_loader: { batch_size: 1, shuffle: true },
  trainer: {
    optimizer: { type: 'adam', lr: 0.001 },
    learning_rate_scheduler: {
      type: 'elmo_staircase',
      decay_rate: 0.999,
      batches_per_step: 100,
    },
    validation_metric: '+coref_f1',
    num_epochs: 150,
    patience: 10,
    grad_norm: 5.0,
    checkpointer: { type: 'elmo_frozen_once' },
  },
}
