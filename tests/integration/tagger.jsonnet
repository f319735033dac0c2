// The NER model with ELMo, small: it is not there to learn, but to be used by every command.
// TAGGER_DATA: a file in the format of CoNLL 2003.
local ner = import '../../training_configs/lib/ner.libsonnet';

local config = std.mergePatch(ner(elmo_at=['input']), { test_data_path: null });

config {
  train_data_path: std.extVar('TAGGER_DATA'),
  validation_data_path: self.train_data_path,
  // Without the words of a file of vectors.
  vocabulary: {},
  model+: {
    dropout: 0,
    encoders: [super.encoders[0] { hidden_size: 4 }, super.encoders[1] { input_size: 8, hidden_size: 4 }],
  },
  data_loader: { batch_size: 2, shuffle: true },
  trainer+: {
    num_epochs: 3,
    optimizer: { type: 'sgd', lr: 0.1, momentum: 0.9 },
    learning_rate_scheduler: { type: 'reduce_on_plateau', mode: 'max', patience: 0 },
  },
}
