// The input of a model: GloVe, characters and ELMo, concatenated, and its width.
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
  // Of the mixed vectors, at each place. None at the input: our models already apply dropout to the encoder's input.
  dropout: { input: 0, output: 0.5 },
  // The paper's lambda: L2 on the weights of the mix.
  l2: 0,
};

function(
  // Where ELMo is: [], ['input'], ['output'] or both.
  elmo_at,
  // What differs from the defaults above.
  elmo={},
  // Whether words are lower-cased for GloVe: yes if the vectors are.
  lowercase=true,
  // Whether GloVe is tuned.
  tune_glove=false,
  // { dim, filters, widths } of a character CNN, with this many filters of each width, or null for none. With
  // `partial_windows: true` a window may extend past the end of a word: see `elmo_cnn`.
  characters=null,
) {
  local unknown = std.setDiff(std.set(elmo_at), ['input', 'output'])
                  + std.setDiff(std.objectFields(elmo), std.objectFields(defaults)),
  assert unknown == [] : 'expected elmo_at of input and output, and elmo with some of %s, got %s' % [std.objectFields(defaults), unknown],

  local glove = environment.glove,
  local with_elmo = elmo_at != [],
  local settings = defaults + elmo,
  local contextual = environment.contextual(settings.bilm, settings.transformer),
  local width_of_elmo(place) = if std.member(elmo_at, place) then contextual.width else 0,

  local character_widths = if characters == null then [] else characters.widths,

  // Widths of the input and of the output embedder.
  input_width: glove.width
               + (if characters == null then 0 else characters.filters * std.length(character_widths))
               + width_of_elmo('input'),
  output_width: width_of_elmo('output'),

  token_indexers: {
    tokens: { type: 'single_id', lowercase_tokens: lowercase },
    [if characters != null then 'token_characters']: {
      type: 'elmo_token_characters',
      min_padding_length: std.foldl(std.max, character_widths, 0),
    },
    [if with_elmo then 'elmo']: contextual.indexer,
  },

  // All words of the vector file are kept, because they occur in test files. If the vectors are tuned, each word costs
  // time and memory in every step, so only the most frequent are kept.
  vocabulary: {
    pretrained_files: { tokens: glove.file },
    min_pretrained_embeddings: { tokens: if tune_glove then 100000 else -1 },
  },

  local embedder_at(place) = if std.member(elmo_at, place) then {
    type: contextual.embedder,
    dropout: settings.dropout[place],
    layers: settings.layers,
    layer_norm: settings.layer_norm,
  } else { type: 'empty' },

  // The part of a task's model that depends on the text.
  model: {
    text_field_embedder: {
      token_embedders: {
        tokens: { type: 'embedding', embedding_dim: glove.width, pretrained_file: glove.file, trainable: tune_glove },
        [if characters != null then 'token_characters']: {
          type: 'elmo_character_encoding',
          embedding: { embedding_dim: characters.dim, vocab_namespace: 'token_characters' },
          encoder: {
            type: 'elmo_cnn',
            embedding_dim: characters.dim,
            num_filters: characters.filters,
            ngram_filter_sizes: character_widths,
            conv_layer_activation: 'relu',
            [if std.objectHas(characters, 'partial_windows') then 'partial_windows']: characters.partial_windows,
          },
        },
        [if with_elmo then 'elmo']: embedder_at('input'),
      },
    },
    [if with_elmo then 'bilm']: contextual.model,
    [if std.member(elmo_at, 'output') then 'output_embedder']: {
      token_embedders: {
        tokens: { type: 'empty' },
        [if characters != null then 'token_characters']: { type: 'empty' },
        elmo: embedder_at('output'),
      },
    },
    [if with_elmo && settings.l2 > 0 then 'regularizer']: {
      regexes: [['layer_weights$', { type: 'l2', alpha: settings.l2 }]],
    },
  },

  // Trainer settings: checkpoints without the frozen biLM, and the training of a transformer that is not frozen.
  trainer: { checkpointer: { type: 'elmo_frozen_once' } } + (if with_elmo then contextual.trainer else {}),
}
