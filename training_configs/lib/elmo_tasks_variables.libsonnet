// The variables of a config. Plain `jsonnet` reads them here: the defaults, as in a checkout.
// `allennlp` does not read this file. It answers the import with the variables of the environment
// (ELMO_TASKS_DATA, ELMO_TASKS_GLOVE, ELMO_TASKS_BILM, ELMO_TASKS_LAYER), so set those instead of
// editing it: see `evaluate_file` in elmo_tasks/configs.py.
{
  // The folder of the data.
  data: 'fixtures',
  // A path, or the name of a file in glove/ of that folder.
  glove: 'glove.open.100d.txt.gz',
  // The layer of pos_layer.jsonnet.
  layer: '1',
  // The biLM: small-open.
  bilm: {
    options: {
      lstm: {
        use_skip_connections: true,
        projection_dim: 128,
        cell_clip: null,
        proj_clip: null,
        dim: 1024,
        n_layers: 2,
      },
      char_cnn: {
        activation: 'relu',
        filters: [[1, 32], [2, 32], [3, 64], [4, 128], [5, 256], [6, 512]],
        n_highway: 1,
        embedding: { dim: 16 },
        n_characters: 262,
        max_characters_per_token: 50,
      },
    },
    weights: 'elmo_tasks/pretrained/small-open/weights.hdf5',
    // The words of its softmax; null if it has none.
    word_list: 'elmo_tasks/pretrained/small-open/vocab.txt',
  },
}
