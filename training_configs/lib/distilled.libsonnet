// A student of a task: its config, and the files that its teachers wrote with the predictor 'elmo_soft_labels'.
function(student, soft_labels)
  student {
    data_loader: { type: 'elmo_distilled', soft_labels: soft_labels, loader: student.data_loader },
    validation_data_loader: student.data_loader,
  }
