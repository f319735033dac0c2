// Entailment with ELMo at the input and at the output of the lowest encoder (Table 1).
local snli = import 'lib/snli.libsonnet';

snli(elmo_at=['input', 'output'])
