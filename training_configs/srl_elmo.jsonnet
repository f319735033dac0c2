// SRL with ELMo at the input (Table 1).
local srl = import 'lib/srl.libsonnet';

srl(elmo_at=['input'])
