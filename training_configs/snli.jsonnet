// Entailment without ELMo: the baseline of Table 1.
local snli = import 'lib/snli.libsonnet';

snli()
