// Persons, organisations and places in ordinary text, with ELMo at the input: the model `ner` of models/.
(import 'lib/ner.libsonnet')(elmo_at=['input'], data='ner_general') + {
  data_loader+: { batch_sampler+: { batch_size: 32 } },
  trainer+: { num_epochs: 8, patience: null },
}
