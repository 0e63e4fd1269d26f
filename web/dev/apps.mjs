// The stand-in's catalog.
import { connection, id, past } from './kit.mjs';

const docs = `Runs jobs from a queue on the members you give it.

## What you get

* one **controller** that keeps the queue
* as many **workers** as you ask for, on nodes of your allocation

| setting | meaning |
|---|---|
| \`partition\` | the queue's name |
| \`maxHours\` | how long a job may run |

\`\`\`sh
appctl action run <instance> queue.submit --input '{"script":"#!/bin/sh\\nhostname"}'
\`\`\`

See [the guide](https://example.com) for more. <script>alert(1)</script>
`;

const queueActions = [
  {
    name: 'queue.submit',
    displayName: 'Submit a job',
    permissionKey: 'scheduler.queue.submit',
    risk: 'WRITE',
    outputSchema: { type: 'object' },
    inputSchema: {
      type: 'object',
      required: ['script'],
      additionalProperties: false,
      properties: {
        script: {
          type: 'string',
          title: 'Script',
          description: 'A shell script that begins with #!',
          maxLength: 65536,
        },
        name: { type: 'string', title: 'Job name', maxLength: 64, pattern: '^[A-Za-z0-9._-]+$' },
        nodes: { type: 'integer', minimum: 1, maximum: 8, default: 1, title: 'Nodes' },
      },
    },
  },
  {
    name: 'queue.list',
    displayName: 'List jobs',
    permissionKey: 'scheduler.queue.read',
    risk: 'READ',
    inputSchema: { type: 'object', properties: { jobId: { type: 'string', title: 'Job' } } },
    outputSchema: {
      type: 'object',
      properties: {
        jobs: {
          type: 'array',
          items: {
            type: 'object',
            properties: {
              jobId: { type: 'string', title: 'Job' },
              name: { type: 'string', title: 'Name' },
              state: { type: 'string', title: 'State' },
              startedAt: { type: 'string', title: 'Started' },
            },
          },
        },
        output: { type: 'string' },
      },
    },
  },
  {
    name: 'queue.cancel',
    displayName: 'Cancel a job',
    permissionKey: 'scheduler.queue.cancel',
    risk: 'DESTRUCTIVE',
    outputSchema: { type: 'object' },
    inputSchema: {
      type: 'object',
      required: ['jobId'],
      properties: { jobId: { type: 'string', title: 'Job', minLength: 1 } },
    },
  },
];

const queueWork = {
  title: 'Jobs',
  kind: 'job',
  list: {
    action: 'queue.list',
    items: 'jobs',
    id: 'jobId',
    state: 'state',
    columns: ['jobId', 'name', 'state', 'startedAt'],
    ended: ['COMPLETED', 'CANCELED'],
  },
  output: { action: 'queue.list', id: 'jobId', text: 'output' },
  cancel: { action: 'queue.cancel', id: 'jobId' },
  submit: { action: 'queue.submit', id: 'jobId' },
};

const specs = [
  {
    slug: 'batch-queue',
    displayName: 'Batch queue',
    permissionFamily: 'scheduler',
    version: '1.2.0',
    summary: 'A queue with a controller and workers. Submit scripts, watch them run, and scale by adding members.',
    compatibility: { requires_capacity_shape: ['baremetal'], min_gpu_count: 1, network_span: 'allocation' },
    components: [
      { key: 'controller', displayName: 'Controller', min: 1, max: 1, default: 1 },
      { key: 'worker', displayName: 'Workers', min: 1, max: 16, default: 2 },
    ],
    configSchema: {
      type: 'object',
      additionalProperties: false,
      required: ['partition'],
      properties: {
        partition: {
          type: 'string',
          title: 'Partition',
          description: 'Name of the queue',
          default: 'main',
          pattern: '^[a-z][a-z0-9]*$',
          maxLength: 16,
        },
        maxHours: {
          type: 'integer',
          title: 'Longest job',
          description: 'Hours a job may run',
          minimum: 1,
          maximum: 168,
          default: 24,
        },
        policy: { enum: ['backfill', 'fifo'], title: 'Scheduling', default: 'backfill' },
        accounting: { type: 'boolean', title: 'Keep accounting', description: 'Records who ran what', default: true },
        limits: {
          type: 'object',
          title: 'Limits',
          properties: {
            jobsPerUser: { type: 'integer', title: 'Jobs of each user', minimum: 1, default: 100 },
            tags: { type: 'array', title: 'Tags', items: { type: 'string' } },
          },
        },
      },
    },
    actions: queueActions,
    work: queueWork,
    docs,
  },
  {
    slug: 'notebook',
    displayName: 'Notebook',
    permissionFamily: 'apps',
    version: '0.4.1',
    summary: 'An interactive notebook server on one slice of a GPU.',
    compatibility: { requires_capacity_shape: ['gpu_slice'], min_gpu_count: 1 },
    components: [{ key: 'server', displayName: 'Server', min: 1, max: 1, default: 1 }],
    configSchema: {
      type: 'object',
      properties: { image: { enum: ['base', 'cuda', 'science'], default: 'base', title: 'Image' } },
    },
    actions: [
      {
        name: 'echo',
        displayName: 'Echo',
        permissionKey: 'apps.node.read',
        risk: 'READ',
        inputSchema: { type: 'object', required: ['text'], properties: { text: { type: 'string', title: 'Text' } } },
        outputSchema: {},
      },
    ],
    docs: 'A notebook.',
  },
  {
    slug: 'ring-test',
    displayName: 'Ring test',
    permissionFamily: 'apps',
    summary: 'Measures the network between members; has no active version yet.',
  },
];

/** The apps with their manifests. */
export function appList() {
  return specs.map((spec) => {
    const digest = `sha256:${id('x').slice(2)}${id('x').slice(2)}aaaaaaaa`;
    const manifest =
      spec.version === undefined
        ? null
        : {
            __typename: 'Manifest',
            id: id('man'),
            appSlug: spec.slug,
            displayName: spec.displayName,
            summary: spec.summary,
            stage: 'ACTIVE',
            digest,
            document: {},
            evidence: { lint: 'ok' },
            createdAt: past(3000),
            version: spec.version,
            compatibility: spec.compatibility,
            configSchema: spec.configSchema,
            components: spec.components,
            actions: spec.actions,
            work: spec.work ?? null,
            docs: spec.docs,
            artifacts: [
              {
                __typename: 'Artifact',
                id: id('art'),
                name: `${spec.slug}-controller`,
                mediaType: 'application/vnd.oci.image.manifest.v1+json',
                ref: `registry.example/${spec.slug}@${digest}`,
                digest,
                sizeBytes: 18_400_000,
                stage: 'ACTIVE',
                evidence: null,
                createdAt: past(3000),
              },
            ],
          };
    const deprecated = { id: id('man'), version: '1.1.0', stage: 'DEPRECATED', createdAt: past(20000) };
    const versions = () => [manifest, { ...manifest, ...deprecated }]; // copied when read: makeReleases completes the manifest later
    return {
      __typename: 'App',
      id: id('app'),
      slug: spec.slug,
      displayName: spec.displayName,
      summary: spec.summary,
      permissionFamily: spec.permissionFamily,
      sandbox: false,
      system: false,
      activeManifest: manifest,
      manifests: (args) => connection(manifest === null ? [] : versions(), args),
      entitled: () => spec.slug !== 'ring-test',
    };
  });
}
