// A new biLM of the small size.
(import 'lib/bilm.libsonnet')(size='small')
