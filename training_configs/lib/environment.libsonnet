// Data, word vectors and biLM of a config, from the variables in elmo_tasks/configs.py.
local transformer_with = import 'transformer.libsonnet';

local glove = std.extVar('ELMO_TASKS_GLOVE');

{
  data(path):: std.extVar('ELMO_TASKS_DATA') + '/' + path,
  // The training, validation and test data of a task, from a pattern such as 'ner/%s.txt'.
  files(pattern):: {
    [key + '_data_path']: $.data(pattern % if key == 'validation' then 'dev' else key)
    for key in ['train', 'validation', 'test']
  },

  bilm: {
    options: import 'ELMO_TASKS_BILM/options.json',
    pretrained_file: import 'ELMO_TASKS_BILM/weights',
    // The word list of its softmax, or null. Hidden, because task models have no softmax.
    word_list:: import 'ELMO_TASKS_BILM/word_list',
  },

  // The model with the layers to mix: the width of its vectors, its token indexer, the type of its token embedder, the
  // model, and its changes to the trainer. A transformer is given by name, or as the result of transformer.libsonnet.
  contextual(bilm, transformer):: if std.isString(transformer) then transformer_with(transformer)
  else if transformer != null then transformer
  else {
    width: 2 * bilm.options.lstm.projection_dim,
    indexer: {
      type: 'elmo',
      [if std.objectHas(bilm.options, 'dictionaries') then 'unicode_characters']:
        bilm.options.char_cnn.max_characters_per_token,
    },
    embedder: 'elmo',
    model: bilm,
    trainer: {},
  },

  // For configs with a single layer: 'mix', 'top', or its number.
  local layer = std.extVar('ELMO_TASKS_LAYER'),
  layer: if std.member(['mix', 'top'], layer) then layer else std.parseInt(layer),

  // The names of GloVe files contain the width of the vectors: glove.6B.100d.txt.
  local glove_path = std.split(glove, '/'),
  local widths = [
    std.parseInt(std.rstripChars(part, 'd'))
    for part in std.split(glove_path[std.length(glove_path) - 1], '.')
    if part != 'd' && std.lstripChars(part, '0123456789') == 'd'
  ],
  glove: {
    // A path, or the name of a file in glove/.
    file: if std.length(glove_path) > 1 then glove else $.data('glove/' + glove),
    width: if std.length(widths) == 1 then widths[0]
    else error 'ELMO_TASKS_GLOVE: expected a name with the width of the vectors, as in glove.6B.100d.txt, got ' + glove,
  },
}
