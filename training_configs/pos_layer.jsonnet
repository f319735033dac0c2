// Parts of speech: a linear classifier on one frozen layer of the biLM.
//
// paper: section 5.3, Table 6; ELMO_TASKS_LAYER selects the layer
// data:  pos/{train,dev,test}.conllu; the Wall Street Journal in the paper, UD English EWT here
// score: test accuracy 93.6 here (layer 1, 3 seeds), 97.3 in the paper
// time:  up to 3 minutes per seed on two cores of an AMD EPYC
// see:   docs/tasks/pos.md; as plain JSON, expanded/pos_layer.json
local environment = import 'lib/environment.libsonnet';

local bilm = environment.bilm;  // Options, weights, indexer, and the width of the vectors.

{
  dataset_reader: {
    type: 'elmo_pos',
    // Which column of CoNLL-U: 'xpos', in English the Penn Treebank's tags as in the paper.
    tags: 'xpos',
    token_indexers: { elmo: bilm.indexer },
  },
  train_data_path: environment.data('pos/train.conllu'),
  validation_data_path: environment.data('pos/dev.conllu'),
  test_data_path: environment.data('pos/test.conllu'),
  model: {
    type: 'elmo_pos',
    text_field_embedder: {
      token_embedders: { elmo: { type: 'elmo', layers: environment.layer, bilm: bilm } },
    },
    // The linear classifier reads the layer directly.
    encoder: { type: 'pass_through', input_dim: bilm.width },
  },
  data_loader: { batch_sampler: { type: 'bucket', batch_size: 64 } },
  // The paper does not say how its classifier was trained.
  trainer: {
    optimizer: { type: 'adam', lr: 0.002 },
    learning_rate_scheduler: {
      type: 'reduce_on_plateau',
      mode: 'max',
      factor: 0.5,
      patience: 1,
    },
    validation_metric: '+accuracy',
    num_epochs: 30,
    patience: 4,
    grad_norm: 5.0,
    checkpointer: { type: 'elmo_frozen_once' },
  },
}
