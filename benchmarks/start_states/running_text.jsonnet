// The biLM of sentences.jsonnet, trained on running text, as the authors train: each window begins in the state that the
// last one left.
local windows = { type: 'elmo_lm_windows', n_streams: 16, window: 20 };

(import 'sentences.jsonnet') {
  model+: { running_state: true },
  data_loader: windows,
  validation_data_loader: windows { shuffle: false },
}
