// Coreference with ELMo at the input (Table 1).
local coref = import 'lib/coref.libsonnet';

coref(elmo_at=['input'])
