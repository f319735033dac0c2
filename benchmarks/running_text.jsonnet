// A small biLM that is trained on running text, as the authors train: each window begins in the state that the last one
// left. For the comparison of zero and settled states: `ELMO_TASKS_DATA=DATA allennlp train benchmarks/running_text.jsonnet
// -s output/running_text`, where `DATA/lm` has `train*` and `dev*`; then `allennlp elmo-export`.
local bilm = import '../training_configs/lib/bilm.libsonnet';

local windows = { type: 'elmo_lm_windows', n_streams: 16, window: 20 };

bilm(
  size={
    cells: 256,
    projection: 64,
    filters: [[1, 16], [2, 16], [3, 32], [4, 64], [5, 64]],
    epochs: 1,
    optimizer: { type: 'adam' },
    scheduler: { type: 'noam', model_size: 128, factor: 0.3, warmup_steps: 300 },
  },
  min_count=5,
  max_words=30000,
  dropout=0,
) {
  model+: { n_samples: 1024, running_state: true },
  data_loader: windows,
  validation_data_loader: windows { shuffle: false },
}
