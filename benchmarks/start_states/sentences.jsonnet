// A small biLM that is trained sentence by sentence, each from the zero state; see README.md in this folder.
local bilm = import '../../training_configs/lib/bilm.libsonnet';

bilm(
  size={
    cells: 256,
    projection: 64,
    filters: [[1, 16], [2, 16], [3, 32], [4, 64], [5, 64]],
    // As many words a step as the streams of running_text.jsonnet have.
    tokens: 16 * 20,
    epochs: 1,
    optimizer: { type: 'adam' },
    scheduler: { type: 'noam', model_size: 128, factor: 0.3, warmup_steps: 300 },
  },
  min_count=5,
  max_words=30000,
  dropout=0,
) {
  model+: { n_samples: 1024 },
}
