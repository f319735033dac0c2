// Universal and Penn Treebank tags in one label, with ELMo at the input: the model `pos` of models/.
(import '../training_configs/lib/pos_tagger.libsonnet')(elmo_at=['input'], tags='both') + {
  trainer+: {
    num_epochs: 6,
    patience: null,
    learning_rate_scheduler: { type: 'elmo_linear_with_warmup', warmup_steps: 100 },
  },
}
