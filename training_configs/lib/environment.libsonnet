// The data, word vectors and biLM of a config.
local variables = import 'elmo_tasks_variables.libsonnet';
local transformer_with = import 'transformer.libsonnet';

// The names of GloVe files contain the width of the vectors: glove.6B.100d.txt.
local width_in(path) = (
  local folders_and_name = std.split(path, '/');
  local widths = [
    std.parseInt(std.rstripChars(part, 'd'))
    for part in std.split(folders_and_name[std.length(folders_and_name) - 1], '.')
    if part != 'd' && std.lstripChars(part, '0123456789') == 'd'
  ];
  if std.length(widths) == 1 then widths[0]
  else error 'ELMO_TASKS_GLOVE: expected a name with the width of the vectors, as in '
             + 'glove.6B.100d.txt, got ' + path
);

{
  // The path of a file or folder of the data: data('ner/train.txt').
  data(path):: variables.data + '/' + path,

  // Word vectors: their file, and their width.
  glove: {
    file: if std.member(variables.glove, '/') then variables.glove
    else $.data('glove/' + variables.glove),
    width: width_in(variables.glove),
  },

  // The model with the layers to mix: the width of its vectors, its token indexer, the type of its
  // token embedder, the model, and its changes to the trainer. A transformer is given by name, or
  // as the result of transformer.libsonnet.
  contextual(bilm, transformer):: if std.isString(transformer) then transformer_with(transformer)
  else if transformer != null then transformer
  else {
    width: 2 * bilm.options.lstm.projection_dim,
    indexer: {
      type: 'elmo',
      // Only biLMs of ELMoForManyLangs have dictionaries.
      [if std.objectHas(bilm.options, 'dictionaries') then 'unicode_characters']:
        bilm.options.char_cnn.max_characters_per_token,
    },
    embedder: 'elmo',
    model: bilm,
    trainer: {},
  },

  // The biLM: its options and weights. The other fields are not written into a config.
  bilm: {
    options: variables.bilm.options,
    pretrained_file: variables.bilm.weights,
    // The words of its softmax, or null: models of tasks have no softmax.
    word_list:: variables.bilm.word_list,
    // The width of ELMo's vectors, and their token indexer: { type: 'elmo' }.
    width:: $.contextual(self, null).width,
    indexer:: $.contextual(self, null).indexer,
  },

  // For configs with a single layer: 'mix', 'top', or its number.
  layer: if std.member(['mix', 'top'], variables.layer) then variables.layer
  else std.parseInt(variables.layer),
}
