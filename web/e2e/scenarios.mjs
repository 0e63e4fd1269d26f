// What the walk enters for each app: the fields of an action's form by their path in its schema.
export const scenarios = {
  slurm: {
    submit: { action: 'queue.submit', fields: { script: '#!/bin/sh\nhostname\n' }, optional: { name: 'console-e2e' } },
    list: { action: 'queue.list' },
  },
  'hello-cluster': {},
  // The app of the development stand-in.
  'batch-queue': {
    submit: { action: 'queue.submit', fields: { script: '#!/bin/sh\nhostname\n' }, optional: { name: 'console-e2e' } },
    list: { action: 'queue.list' },
  },
};
