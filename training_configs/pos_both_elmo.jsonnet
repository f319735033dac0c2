// Universal and Penn Treebank tags in one label, with ELMo at the input: the model `pos` of models/.
(import 'lib/pos_tagger.libsonnet')(elmo_at=['input'], tags='both') + {
  trainer+: { num_epochs: 5, patience: null },
}
