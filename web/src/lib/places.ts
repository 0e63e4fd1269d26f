// The pages of the navigation: the path of each, and the text of its head. The first drawing (ui/first.ts) shows both
// before the console's own code is loaded, so this file imports nothing.

/** A page that the navigation leads to. */
export interface Place {
  readonly path: `/${string}`;
  readonly title: string;
  /** What the page shows, in a sentence or two. */
  readonly lede: string;
  readonly icon: string;
  readonly group: 'Project' | 'Publishing' | 'Control' | 'Platform';
  /** The permission keys without which the navigation does not show it. */
  readonly needs: readonly string[];
  /** Whether the page takes the window's whole width. */
  readonly wide?: boolean;
}

/** The places in the navigation's order. */
export const places = [
  {
    path: '/workloads',
    title: 'Workloads',
    lede: 'Clusters and apps that run in this project, newest first.',
    icon: 'workloads',
    group: 'Project',
    needs: [],
  },
  {
    path: '/catalog',
    title: 'Catalog',
    lede: 'Apps you can run on the capacity your project rents.',
    icon: 'catalog',
    group: 'Project',
    needs: [],
  },
  {
    path: '/allocations',
    title: 'Allocations',
    lede: 'Capacity your project rents. Workloads are launched into it; the platform picks the nodes.',
    icon: 'allocations',
    group: 'Project',
    needs: [],
  },
  {
    path: '/volumes',
    title: 'Volumes',
    lede: 'Files that outlast workloads. A workload uses a volume in a slot of its app; several may use one.',
    icon: 'volumes',
    group: 'Project',
    needs: [],
  },
  {
    path: '/operations',
    title: 'Operations',
    lede: 'All operations that were requested in this project, newest first.',
    icon: 'operations',
    group: 'Project',
    needs: [],
  },
  {
    path: '/orphans',
    title: 'Orphans',
    lede: 'What operations left behind: residue on nodes that did not answer, and capacity that could not be released. Each is retried until it is cleaned up.',
    icon: 'orphans',
    group: 'Project',
    needs: [],
  },
  {
    path: '/control-planes',
    title: 'Sharing',
    lede: 'A control plane that serves the whole tenant can be offered to its other projects. Those that accept use its app with their own permissions.',
    icon: 'nodes',
    group: 'Project',
    needs: [],
  },
  {
    path: '/costs',
    title: 'Costs',
    lede: 'What this project costs this month, summed from the books. Usage of the last minutes is not in them yet.',
    icon: 'cost',
    group: 'Project',
    needs: ['billing.read'],
  },
  {
    path: '/webhooks',
    title: 'Webhooks',
    lede: 'Events of this project, sent to your own services as they happen: signed, retried, and listed as dead letters when delivery fails for good.',
    icon: 'out',
    group: 'Project',
    needs: ['webhook.read'],
  },
  {
    path: '/releases',
    title: 'Releases',
    lede: 'Versions of the apps on their way from draft to retired. Each step needs its evidence, and is recorded with who took it and why.',
    icon: 'launch',
    group: 'Publishing',
    needs: ['manifest.read'],
    wide: true,
  },
  {
    path: '/gaps',
    title: 'Gaps',
    lede: 'What the platform lacks for apps: raised by people, or found by a condition of onboarding that failed.',
    icon: 'warn',
    group: 'Publishing',
    needs: ['gap.read'],
  },
  {
    path: '/artifacts',
    title: 'Artifacts',
    lede: 'Images, weights, data and scripts that versions pin. Every byte was checked against its digest, and every signature against the keys that its source trusts.',
    icon: 'allocations',
    group: 'Publishing',
    needs: ['artifact.read'],
  },
  {
    path: '/sources',
    title: 'Sources',
    lede: 'Registries and stores that artifacts may come from. Nodes never connect to them: the platform does, with a credential that is never shown.',
    icon: 'out',
    group: 'Publishing',
    needs: ['source.read'],
  },
  {
    path: '/access',
    title: 'Access',
    lede: 'Who may do what in this project, what its automation may do, and which apps it may launch.',
    icon: 'key',
    group: 'Control',
    needs: [],
  },
  {
    path: '/policy',
    title: 'Policy',
    lede: 'What may be launched here, where, and how large. The platform sets the widest limits; tenant and project can only narrow them.',
    icon: 'policy',
    group: 'Control',
    needs: ['policy.read'],
  },
  {
    path: '/audit',
    title: 'Audit',
    lede: 'Every privileged attempt in this project, allowed or refused, newest first. The entries are sealed into a chain, so that any change to them is detected.',
    icon: 'audit',
    group: 'Control',
    needs: ['audit.read'],
  },
  {
    path: '/nodes',
    title: 'Nodes',
    lede: 'Machines that a node agent has enrolled, on the whole platform.',
    icon: 'nodes',
    group: 'Platform',
    needs: ['node.read'],
  },
  {
    path: '/platform-costs',
    title: 'Platform costs',
    lede: 'What every tenant costs this month, and what the platform bears itself: failed additions, orphans, silent nodes.',
    icon: 'cost',
    group: 'Platform',
    needs: ['node.read', 'billing.read'],
  },
] as const satisfies readonly Place[];

/** The path of a place. */
export type PlacePath = (typeof places)[number]['path'];

/** The groups of the navigation, each with the places that a viewer's permissions allow, as `can` reports them. */
export function placesFor(can: (key: string) => boolean) {
  const seen = places.filter((place) => place.needs.every(can));
  return [...new Set(seen.map((place) => place.group))].map((group) => ({
    group,
    places: seen.filter((place) => place.group === group),
  }));
}

/** Returns the place at a path, for the root, the place that it leads to; undefined for every other page. */
export function placeAt(path: string): Place | undefined {
  return places.find((place) => place.path === (path === '/' ? '/workloads' : path));
}

/** Returns the class of the page at a place. */
export function pageClass(place: Place | undefined): string {
  return place?.wide === true ? 'page wide' : 'page';
}

/** Returns the text of the head of a place's page. */
export function headOf(path: PlacePath): { title: string; lede: string } {
  const { title, lede } = places.find((place) => place.path === path) ?? places[0];
  return { title, lede };
}
