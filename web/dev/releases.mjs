// The stand-in's sources, artifacts and versions in every stage: enough to show every page of publishing.
import { connection, id, past } from './kit.mjs';

const digest = () => `sha256:${id('x').slice(2)}${id('x').slice(2)}`.padEnd(71, 'a').slice(0, 71);
const person = { kind: 'user', id: id('usr'), name: 'Ada' };

const step = (from, to, minutes, reason, canaryPercent = null) => ({
  id: id('prm'),
  objectId: '',
  from,
  to,
  canaryPercent,
  reason,
  override: '',
  actor: person,
  createdAt: past(minutes),
});

function sourceList(tenant) {
  const key = (name, revokedAt = null) => ({
    id: id('sgk'),
    sourceId: '',
    name,
    publicKey: '',
    fingerprint: digest(),
    algorithm: 'ecdsa-p256',
    validFrom: past(9000),
    validUntil: null,
    revokedAt,
    revokeReason: revokedAt === null ? '' : 'lost',
    createdBy: 'Ada',
    createdAt: past(9000),
  });
  const source = (name, rest) => ({
    __typename: 'ArtifactSource',
    id: id('src'),
    tenantId: null,
    name,
    kind: 'OCI',
    region: '',
    signaturePolicy: 'REQUIRED',
    credentialUser: '',
    credentialAt: null,
    disabledAt: null,
    createdBy: 'Ada',
    createdAt: past(9000),
    keys: [],
    ...rest,
  });
  return [
    source('platform', {
      location: 'registry.example/platform',
      credentialUser: 'puller',
      credentialAt: past(500),
      keys: [key('release 2026'), key('release 2025', past(4000))],
    }),
    source('weights', {
      tenantId: tenant.id,
      kind: 'S3',
      location: 'https://objects.example/weights/',
      region: 'eu-central-1',
      signaturePolicy: 'QUARANTINE',
    }),
    source('old-mirror', {
      tenantId: tenant.id,
      kind: 'HTTPS',
      location: 'https://mirror.example/files/',
      signaturePolicy: 'OPTIONAL',
      disabledAt: past(100),
    }),
  ];
}

function artifactOf(manifest, source, rest) {
  const own = digest();
  return {
    __typename: 'Artifact',
    id: id('art'),
    name: `${manifest.appSlug}-image`,
    kind: 'IMAGE',
    mediaType: 'application/vnd.oci.image.manifest.v1+json',
    ref: `${source.location}/${manifest.appSlug}@${own}`,
    digest: own,
    sizeBytes: 48_210_113,
    stage: 'ACTIVE',
    evidence: null,
    source,
    tenantId: null,
    projectId: null,
    platforms: ['linux/amd64'],
    signature: 'VERIFIED',
    signedBy: source.keys[0] ?? null,
    quarantinedAt: null,
    quarantineCode: '',
    quarantineReason: '',
    verifiedAt: past(300),
    createdAt: past(900),
    pinnedBy: [manifest],
    parts: [
      {
        role: 'MANIFEST',
        digest: own,
        mediaType: 'application/vnd.oci.image.manifest.v1+json',
        sizeBytes: 612,
        platform: '',
        title: '',
        parent: '',
      },
      {
        role: 'CONFIG',
        digest: digest(),
        mediaType: 'application/vnd.oci.image.config.v1+json',
        sizeBytes: 501,
        platform: '',
        title: '',
        parent: own,
      },
      {
        role: 'LAYER',
        digest: digest(),
        mediaType: 'application/vnd.oci.image.layer.v1.tar+gzip',
        sizeBytes: 48_209_000,
        platform: '',
        title: '',
        parent: own,
      },
    ],
    history: [
      step('CANARY', 'ACTIVE', 200, 'confidence gained'),
      step('STAGED', 'CANARY', 300, 'small roll-out'),
      step('DRAFT', 'STAGED', 400, 'checked'),
    ],
    ...rest,
  };
}

/** The chart of a canary that gets worse. */
function points() {
  return Array.from({ length: 60 }, (_, at) => ({
    at: past(600 - at * 10),
    canaryLaunches: Math.floor((at + 1) / 4),
    canaryFailed: Math.floor(at / 12),
    activeLaunches: at + 1 - Math.floor((at + 1) / 4),
    activeFailed: Math.floor(at / 25),
    evidence: Math.min(90, (at / 60) ** 2 * 80),
  }));
}

const arm = (manifest, launches, failed, pending) => ({
  manifest,
  launches,
  failed,
  pending,
  failureRate: failed / launches,
  operations: launches * 2,
  operationsFailed: failed,
  timeToRunningP50: 41.2,
  timeToRunningP90: 77.9,
});

/** What the catalog's stages look like with one app further than the others. */
export function makeReleases(apps, tenant) {
  const sources = sourceList(tenant);
  const extra = (manifest, rest) => ({
    artifactKind: 'controller',
    canaryPercent: 0,
    canaryHaltedAt: null,
    canaryHaltReason: '',
    reports: [],
    history: [],
    lacks: [],
    runbooks: [{ title: 'When a launch is stuck', url: 'https://example.com/stuck' }],
    lifecycle: {
      upgrade: { mode: 'rolling', keepsWork: true },
      rollback: { mode: 'rolling', keepsWork: true },
      delete: { mode: 'graceful', keepsWork: false },
    },
    icon: '',
    ...manifest,
    ...rest,
  });
  const manifests = apps.flatMap((app) => (app.activeManifest === null ? [] : [app.activeManifest]));
  for (const manifest of manifests) {
    Object.assign(
      manifest,
      extra(manifest, {
        history: [step('CANARY', 'ACTIVE', 200, 'confidence gained')],
        reports: [
          {
            id: id('evd'),
            manifestId: manifest.id,
            kind: 'CONFORMANCE',
            digest: digest(),
            summary: {},
            passed: true,
            submittedBy: 'publisher-ci',
            runnerId: '',
            createdAt: past(600),
          },
        ],
      }),
    );
  }
  const [first] = manifests;
  const canary = extra(first, {
    id: id('man'),
    version: '1.3.0-rc.1',
    stage: 'CANARY',
    canaryPercent: 20,
    createdAt: past(600),
    evidence: { lint: 'ok' },
    history: [step('STAGED', 'CANARY', 600, 'small roll-out', 20), step('DRAFT', 'STAGED', 700, 'smoke passed')],
  });
  const draft = extra(first, {
    id: id('man'),
    version: '1.4.0',
    stage: 'DRAFT',
    createdAt: past(20),
    evidence: null,
    history: [],
    lacks: [
      {
        code: 'EVIDENCE_MISSING',
        message: 'no conformance report of the adapter’s build has passed',
        path: 'evidence.conformance',
      },
      { code: 'EVIDENCE_MISSING', message: 'no smoke launch was named', path: 'input.smokeInstanceId' },
    ],
  });
  for (const app of apps)
    Object.assign(app, {
      icon: '',
      publisherProjectId: null,
      canaryManifest: app.activeManifest === first ? canary : null,
    });
  for (const manifest of manifests)
    manifest.artifacts = manifest.artifacts.map((each) => ({ ...each, signature: 'VERIFIED', quarantinedAt: null }));
  canary.artifacts = first.artifacts;
  draft.artifacts = first.artifacts;
  const all = [draft, canary, ...manifests];
  const artifacts = [
    ...manifests.map((manifest) => artifactOf(manifest, sources[0], {})),
    artifactOf(first, sources[1], {
      name: 'llm-weights',
      kind: 'BLOB',
      signature: 'UNTRUSTED',
      signedBy: null,
      stage: 'DRAFT',
      platforms: [],
      pinnedBy: [],
      history: [],
      quarantinedAt: past(30),
      quarantineCode: 'SIGNATURE_UNTRUSTED',
      quarantineReason: 'signed by a key that the source does not trust',
    }),
  ];
  const has = (text, part) => part == null || text.toLowerCase().includes(part.toLowerCase());
  return {
    query: {
      manifests: ({ search, appSlug, stages, ...args }) =>
        connection(
          all.filter(
            (row) =>
              has(row.appSlug, search) &&
              (appSlug == null || row.appSlug === appSlug) &&
              (stages == null || stages.includes(row.stage)),
          ),
          args,
        ),
      artifacts: ({ search, quarantined, ...args }) =>
        connection(
          artifacts.filter(
            (row) => has(row.name, search) && (quarantined == null || quarantined === (row.quarantinedAt !== null)),
          ),
          args,
        ),
      artifactSources: (args) => connection(sources, args),
      canaryReport: () => ({
        percent: 20,
        startedAt: past(600),
        haltedAt: null,
        haltReason: '',
        verdict: 'NO_WORSE',
        threshold: 100,
        canary: arm(canary, 15, 4, 1),
        active: arm(first, 45, 2, 0),
        points: points(),
      }),
      lintManifest: ({ document }) => ({
        ok: typeof document.app === 'string',
        reasons: typeof document.app === 'string' ? [] : [{ code: 'REQUIRED', message: 'must be given', path: 'app' }],
      }),
    },
    node: (wanted) => all.find((row) => row.id === wanted) ?? artifacts.find((row) => row.id === wanted),
  };
}
