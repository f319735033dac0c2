// SRL with ELMo at the input (Table 1).
(import 'lib/srl.libsonnet')(elmo_at=['input'])
