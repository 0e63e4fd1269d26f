// What the walk asks of each app: the fields of an action's form by their path in its schema, and a text that the
// list must then show.
const queue = {
  submit: { action: 'queue.submit', fields: { script: '#!/bin/sh\nhostname\n' }, optional: { name: 'console-e2e' } },
  list: { action: 'queue.list', shows: 'console-e2e' },
};

export const scenarios = {
  slurm: queue,
  'batch-queue': queue, // the app of the development stand-in
  'hello-cluster': {
    submit: { action: 'hello.say', fields: { name: 'console-e2e' } },
    list: { action: 'hello.list', shows: 'console-e2e' },
  },
};
