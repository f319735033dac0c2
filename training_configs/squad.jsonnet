// SQuAD without ELMo: the baseline of Table 1.
(import 'lib/squad.libsonnet')()
