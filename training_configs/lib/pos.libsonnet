// Variants of ../pos_layer.jsonnet: other layers, other tags, or a transformer.
local environment = import 'environment.libsonnet';

function(
  // The number of a layer (0 is the context-insensitive one), 'top', or 'mix' for all layers.
  layer=environment.layer,
  bilm=environment.bilm,
  // A transformer instead: its name, or the result of transformer.libsonnet.
  transformer=null,
  // Which column of CoNLL-U: 'xpos', in English the Penn Treebank's tags, or 'upos'.
  tags='xpos',
) (
  local source = environment.contextual(bilm, transformer);

  (import '../pos_layer.jsonnet') + {
    dataset_reader+: { tags: tags, token_indexers: { elmo: source.indexer } },
    model+: {
      text_field_embedder: {
        token_embedders: { elmo: { type: source.embedder, layers: layer, bilm: source.model } },
      },
      encoder+: { input_dim: source.width },
    },
    trainer+: source.trainer,
  }
)
