// Parts of speech with ELMo at the input.
(import 'lib/pos_tagger.libsonnet')(elmo_at=['input'])
