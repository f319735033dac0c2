// Parts of speech with ELMo at the input.
local pos_tagger = import 'lib/pos_tagger.libsonnet';

pos_tagger(elmo_at=['input'])
