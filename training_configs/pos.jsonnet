// Parts of speech without ELMo.
(import 'lib/pos_tagger.libsonnet')()
