// The order of the folders of src, lowest first. A file may import files of its own folder and of folders on lower
// floors. Folders on the same floor do not import each other. floors.test.ts checks every import against this list.

/** The folders by floor, lowest first. '.' is src itself: the entry, the router and the theme. */
export const floors: readonly (readonly string[])[] = [
  ['generated', 'styles'], // the types of the schema and of the operations; style sheets
  ['lib'], // pure functions: no page, no network
  ['api'], // the client, live feeds, the session, and hooks over them
  ['ui'], // parts that every page uses
  ['changes'], // the dialog of every change: form, plan, reason; blockers
  [
    'access',
    'allocations',
    'audit',
    'costs',
    'graphiql',
    'lifecycle',
    'login',
    'nodes',
    'onboarding',
    'operations',
    'orphans',
    'policy',
    'releases',
    'secrets',
    'sources',
    'terminal',
    'topology',
    'volumes',
    'webhooks',
  ], // features that use no other feature
  ['artifacts', 'catalog', 'launch', 'shell', 'workloads'], // features that use those below
  ['sharing'], // offers the control plane of a workload, and shows its actions
  ['.'], // main.tsx, router.tsx, theme.ts
];
