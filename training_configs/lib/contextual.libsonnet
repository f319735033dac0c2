// The model whose layers are mixed, for the templates of the tasks: the width of its vectors, its token indexer, the
// model, and what it changes in the trainer.
local environment = import 'environment.libsonnet';
local transformer = import 'transformer.libsonnet';

function(
  // A transformer: its name, or what transformer.libsonnet makes of it; null for the biLM.
  contextual,
  // { options, pretrained_file } of the biLM.
  bilm,
)
  local made = if std.isString(contextual) then transformer(contextual) else contextual;
  assert made == null || (std.isObject(made) && std.objectHas(made, 'indexer')) :
         'contextual must be the name of a transformer, or what lib/transformer.libsonnet makes of it, but is of type %s, without an indexer' % std.type(made);
  if made != null then made else {
    width: 2 * bilm.options.lstm.projection_dim,
    indexer: environment.indexer(bilm),
    model: bilm,
    trainer: {},
  }
