// SQuAD with ELMo at the input and the output of the biGRU (Table 1).
local squad = import 'lib/squad.libsonnet';

squad(elmo_at=['input', 'output'])
