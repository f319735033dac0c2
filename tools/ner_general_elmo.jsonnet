// Persons, organisations and places in ordinary text, with ELMo at the input: the model `ner` of models/.
(import '../training_configs/lib/ner.libsonnet')(elmo_at=['input'], data='ner_general') + {
  // Rarer words, unless GloVe has them, are unknown.
  vocabulary+: { min_count: { tokens: 3 } },
  data_loader+: { batch_sampler+: { batch_size: 96 } },
  trainer+: {
    optimizer+: { lr: 0.0013 },
    num_epochs: 8,
    patience: null,
    learning_rate_scheduler: { type: 'elmo_linear_with_warmup', warmup_steps: 100 },
  },
}
