// Parts of speech from one frozen layer of the biLM: section 5.3 of the paper, Table 6.
local environment = import 'environment.libsonnet';

function(
  // The number of a layer (0 is the context-insensitive one), 'top', or 'mix' for the mix of all layers.
  layer=environment.layer,
  bilm=environment.bilm,
  // A transformer instead: its name, or the result of transformer.libsonnet.
  transformer=null,
  // Which column of CoNLL-U: 'xpos', in English the Penn Treebank's tags as in the paper, or 'upos'.
  tags='xpos',
) (
  local contextual = environment.contextual(bilm, transformer);

  environment.files('pos/%s.conllu') + {
    dataset_reader: { type: 'elmo_pos', tags: tags, token_indexers: { elmo: contextual.indexer } },
    // The linear classifier reads the layer directly.
    model: {
      type: 'elmo_pos',
      text_field_embedder: { token_embedders: { elmo: { type: contextual.embedder, layers: layer, bilm: contextual.model } } },
      encoder: { type: 'pass_through', input_dim: contextual.width },
    },
    data_loader: { batch_sampler: { type: 'bucket', batch_size: 64 } },
    // The paper does not say how its classifier was trained.
    trainer: {
      optimizer: { type: 'adam', lr: 0.002 },
      learning_rate_scheduler: { type: 'reduce_on_plateau', mode: 'max', factor: 0.5, patience: 1 },
      validation_metric: '+accuracy',
      num_epochs: 30,
      patience: 4,
      grad_norm: 5.0,
      checkpointer: { type: 'elmo_frozen_once' },
    } + contextual.trainer,
  }
)
