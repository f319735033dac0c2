// Learns a softmax for a biLM that has none, as the shipped one and those of the authors: the biLM keeps its weights.
local bilm = import 'lib/bilm.libsonnet';
local environment = import 'lib/environment.libsonnet';

bilm(start=environment.bilm, frozen=true)
