// SRL without ELMo: the baseline of Table 1.
local srl = import 'lib/srl.libsonnet';

srl()
