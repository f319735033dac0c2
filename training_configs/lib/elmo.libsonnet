// What ELMo, or a transformer, adds to a config that has neither. A template adds it, and then
// widens what reads the vectors:
//
//     local elmo_with = import 'elmo.libsonnet';
//     local elmo = elmo_with(['input'], { l2: 0.1 });
//     elmo.added_to(import '../ner.jsonnet') + { model+: { ... input_size+: elmo.input_width } }
local environment = import 'environment.libsonnet';

local defaults = {
  // Options and weights of the biLM.
  bilm: environment.bilm,
  // A transformer instead: its name, or the result of transformer.libsonnet.
  transformer: null,
  // 'mix', 'top', or the number of a layer.
  layers: 'mix',
  // 'token', 'batch', or null for none.
  layer_norm: null,
  // Of the mixed vectors, at each place. None at the input: our models already apply dropout to
  // the encoder's input.
  dropout: { input: 0, output: 0.5 },
  // The paper's lambda: L2 on the weights of the mix.
  l2: 0,
};

function(
  // Where ELMo is: [], ['input'], ['output'] or both.
  elmo_at,
  // What differs from the defaults above.
  elmo={},
) {
  local unknown = std.setDiff(std.set(elmo_at), ['input', 'output'])
                  + std.setDiff(std.objectFields(elmo), std.objectFields(defaults)),
  assert unknown == [] : 'expected elmo_at of input and output, and elmo with some of %s, got %s'
                         % [std.objectFields(defaults), unknown],

  local settings = defaults + elmo,
  local source = environment.contextual(settings.bilm, settings.transformer),
  local is_at(place) = std.member(elmo_at, place),

  // What it adds to the width of the embedded words, and of an encoder's output.
  input_width: if is_at('input') then source.width else 0,
  output_width: if is_at('output') then source.width else 0,

  local embedder_at(place) = if is_at(place) then {
    type: source.embedder,
    dropout: settings.dropout[place],
    layers: settings.layers,
    layer_norm: settings.layer_norm,
  } else { type: 'empty' },

  // A config with ELMo at its places.
  added_to(config):: if elmo_at == [] then config else config + {
    local indexed = { token_indexers+: { elmo: source.indexer } },
    local other_embedders = std.objectFields(config.model.text_field_embedder.token_embedders),

    dataset_reader+: indexed,
    [if std.objectHas(config, 'validation_dataset_reader') then 'validation_dataset_reader']+:
      indexed,
    model+: {
      bilm: source.model,
      text_field_embedder+: { token_embedders+: { elmo: embedder_at('input') } },
      [if is_at('output') then 'output_embedder']: {
        token_embedders: { elmo: embedder_at('output') }
                         + { [name]: { type: 'empty' } for name in other_embedders },
      },
      [if settings.l2 > 0 then 'regularizer']: {
        regexes: [['layer_weights$', { type: 'l2', alpha: settings.l2 }]],
      },
    },
    // A transformer may change the optimizer and its schedule.
    trainer+: source.trainer,
  },
}
