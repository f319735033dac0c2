// Coreference with ELMo at the input (Table 1).
(import 'lib/coref.libsonnet')(elmo_at=['input'])
