// Coreference without ELMo: the baseline of Table 1.
local coref = import 'lib/coref.libsonnet';

coref()
