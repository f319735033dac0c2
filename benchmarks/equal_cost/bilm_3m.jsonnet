// A biLM of 3 million parameters, for `STEPS` batches: those of train_transformer.py.
local bilm = import '../../training_configs/lib/bilm.libsonnet';

local steps = std.parseInt(std.extVar('STEPS'));

bilm(
  size={
    cells: 512,
    filters: [[1, 16], [2, 16], [3, 32], [4, 64], [5, 128], [6, 256]],
    tokens: 4096,
    epochs: 1,
    // As that of the transformers.
    scheduler: { type: 'linear_with_warmup', warmup_steps: std.max(1, std.floor(steps / 10)) },
  },
  max_words=30000,
  nfc=false,
) {
  // Of the few words, a quarter of the samples is enough.
  model+: { n_samples: 2048 },
  data_loader+: { batches_per_epoch: steps },
}
