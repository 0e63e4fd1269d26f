// What the walk does with each app: the fields of an action's form by their path in its schema, a text that the list
// must then show, the component to which a member is added and from which it is removed, whether the walk includes
// the pages of access, which the development stand-in does not have, whether its usage is there at once, and whether
// it is billed, so that plans and pages show prices.
const queue = {
  submit: { action: 'queue.submit', fields: { script: '#!/bin/sh\nhostname\n' }, optional: { name: 'console-e2e' } },
  list: { action: 'queue.list', shows: 'console-e2e' },
};

export const scenarios = {
  slurm: queue,
  'batch-queue': { ...queue, grow: 'worker', usage: true, costs: true }, // the app of the development stand-in
  'hello-cluster': {
    grow: 'peer',
    govern: true,
    costs: true,
    submit: { action: 'hello.say', fields: { name: 'console-e2e' } },
    list: { action: 'hello.list', shows: 'console-e2e' },
  },
};
