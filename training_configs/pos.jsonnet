// Parts of speech without ELMo.
local pos_tagger = import 'lib/pos_tagger.libsonnet';

pos_tagger()
