// Learns a softmax of the words of a text for a biLM that keeps its weights, as those of the authors, which have none.
local bilm = import 'lib/bilm.libsonnet';
local environment = import 'lib/environment.libsonnet';

bilm(start=environment.bilm, frozen=true)
