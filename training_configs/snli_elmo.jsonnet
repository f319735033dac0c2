// Entailment: ESIM, with ELMo.
//
// paper: section A.3, Table 1; ELMo is at the input and the output of its first biLSTM
// data:  snli/{train,dev,test}.jsonl; 549,367 pairs of SNLI in the paper, 18,000 here
// score: test accuracy 75.2 here (5 seeds with hidden=150), 88.7 in the paper
// time:  up to 66 minutes per seed on one thread of an AMD EPYC
// see:   docs/tasks/snli.md; as plain JSON, expanded/snli_elmo.json
local environment = import 'lib/environment.libsonnet';

local glove = environment.glove;  // GloVe vectors: file and width.
local bilm = environment.bilm;  // Options, weights, indexer, and the width of the vectors.

{
  // Units of each direction of the LSTMs, and of the fully connected layers.
  hidden:: 300,

  dataset_reader: {
    type: 'elmo_snli',
    token_indexers: {
      tokens: { type: 'single_id', lowercase_tokens: true },
      elmo: bilm.indexer,
    },
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
        // The paper's mix of the biLM's layers. Its vectors share the encoder's dropout.
        elmo: { type: 'elmo', layers: 'mix', layer_norm: 'token', dropout: 0 },
      },
    },
    bilm: bilm,
    encoder: {
      type: 'elmo_lstm',
      input_size: glove.width + bilm.width,
      hidden_size: $.hidden,
      bidirectional: true,
    },
    // ELMo again, at the output of the lowest encoder.
    output_embedder: {
      token_embedders: {
        tokens: { type: 'empty' },
        elmo: { type: 'elmo', layers: 'mix', layer_norm: 'token', dropout: 0 },
      },
    },
    projection_feedforward: {
      // A word, its attended words, their difference and their product.
      input_dim: 4 * (2 * $.hidden + bilm.width),
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
    // With ELMo the model is larger, and the paper regularises it more.
    attention_dropout: 0.5,
    regularizer: {
      regexes: [
        // The paper's lambda.
        ['layer_weights$', { type: 'l2', alpha: 0.001 }],
        [
          '^((inference_)?encoder|(projection|output)_feedforward|label_projection)\\..*weight',
          { type: 'l2', alpha: 0.0001 },
        ],
      ],
    },
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
