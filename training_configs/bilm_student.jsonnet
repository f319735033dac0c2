// A biLM of a quarter of the cells, which learns the layers of ELMO_TASKS_BILM.
local student = import 'lib/bilm_student.libsonnet';

student()
