"""Works: the jobs that move a project from label to label, and the queues they wait in."""
