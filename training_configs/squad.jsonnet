// SQuAD without ELMo: the baseline of Table 1.
local squad = import 'lib/squad.libsonnet';

squad()
