// Entailment: ESIM, without ELMo.
//
// paper: section A.3, baseline of Table 1
// data:  snli/{train,dev,test}.jsonl; 549,367 pairs of SNLI in the paper, 18,000 here
// score: test accuracy 66.0 here (5 seeds with hidden=150), 88.0 in the paper
// time:  up to 54 minutes per seed on one thread of an AMD EPYC
// see:   docs/tasks/snli.md; as plain JSON, expanded/snli.json
local environment = import 'lib/environment.libsonnet';

local glove = environment.glove;  // GloVe vectors: file and width.

{
  // Units of each direction of the LSTMs, and of the fully connected layers.
  hidden:: 300,

  dataset_reader: {
    type: 'elmo_snli',
    token_indexers: { tokens: { type: 'single_id', lowercase_tokens: true } },
  },
  train_data_path: environment.data('snli/train.jsonl'),
  validation_data_path: environment.data('snli/dev.jsonl'),
  test_data_path: environment.data('snli/test.jsonl'),
  vocabulary: {
    pretrained_files: { tokens: glove.file },
    // -1: all words of the file, because test data may contain any of them.
    min_pretrained_embeddings: { tokens: -1 },
  },
  model: {
    type: 'elmo_snli',
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
    encoder: {
      type: 'elmo_lstm',
      input_size: glove.width,
      hidden_size: $.hidden,
      bidirectional: true,
    },
    projection_feedforward: {
      // A word, its attended words, their difference and their product.
      input_dim: 4 * 2 * $.hidden,
      num_layers: 1,
      hidden_dims: $.hidden,
      activations: 'relu',
    },
    inference_encoder: {
      type: 'elmo_lstm',
      input_size: $.hidden,
      hidden_size: $.hidden,
      bidirectional: true,
    },
    output_feedforward: {
      // Mean and maximum of each of the two sentences.
      input_dim: 4 * 2 * $.hidden,
      num_layers: 1,
      hidden_dims: $.hidden,
      activations: 'relu',
    },
    dropout: 0.5,
    attention_dropout: 0,
  },
  data_loader: {
    batch_sampler: { type: 'bucket', batch_size: 32, sorting_keys: ['premise', 'hypothesis'] },
  },
  trainer: {
    optimizer: { type: 'elmo_fused_adam', lr: 0.0004 },
    // Halved after each epoch without a better score.
    learning_rate_scheduler: {
      type: 'reduce_on_plateau',
      factor: 0.5,
      mode: 'max',
      patience: 0,
    },
    validation_metric: '+accuracy',
    num_epochs: 75,
    patience: 5,
    grad_norm: 5.0,
    checkpointer: { type: 'elmo_frozen_once' },
  },
}
