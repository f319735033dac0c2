// A biLM of 3 million parameters, for `STEPS` batches: those of train_transformer.py.
local bilm = import '../../training_configs/lib/bilm.libsonnet';

bilm(
  size={
    cells: 512,
    filters: [[1, 16], [2, 16], [3, 32], [4, 64], [5, 128], [6, 256]],
    tokens: 4096,
    epochs: 1,
  },
  nfc=false,
) {
  data_loader+: { batches_per_epoch: std.parseInt(std.extVar('STEPS')) },
}
