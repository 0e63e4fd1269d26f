// Usage of the stand-in's workloads: capacity by the hour, what the app counts, and one record that was not taken.
import { connection, id, past } from './kit.mjs';

const sum = (meter, unit, quantity, more = {}) => ({
  hour: null,
  basis: 'CAPACITY',
  meter,
  unit,
  borneBy: 'TENANT',
  borneReason: null,
  quantity,
  records: 90,
  ...more,
});

export const usageKeys = ['usage.read'];

/** The root fields of usage. */
export function usageQueries(world) {
  const of = (instanceId) => world.instances.filter((each) => each.id === instanceId && each.status !== 'CREATED');
  return {
    usageSums: ({ filter: { instanceId } }) =>
      of(instanceId).flatMap(() => [
        sum('jobs', 'job', '12', { basis: 'APP', records: 12 }),
        sum('gpu_seconds', 'second', '1234567'),
        sum('gpu_seconds', 'second', '540', { borneBy: 'PLATFORM', borneReason: 'FAILED_ADD', records: 9 }),
        sum('job.node_seconds', 'node-second', '86400.5', { basis: 'SHOWBACK', records: 12 }),
      ]),
    usageSources: ({ instanceId }) =>
      of(instanceId).map(() => ({
        source: instanceId,
        basis: 'APP',
        recordedTo: past(1),
        provedTo: null,
        failures: 2,
        lastError: 'the adapter did not answer within 10 s',
      })),
    usageQuarantine: ({ instanceId, ...args }) =>
      connection(
        of(instanceId).map((instance) => ({
          id: id('uqr'),
          projectId: instance.projectId,
          source: instanceId,
          meter: 'jobs',
          usageId: 'jobs/17/1795168801',
          code: 'USAGE_ID_REUSED',
          field: 'id',
          message: 'id belongs to a record with other content',
          record: {},
          createdAt: past(3),
        })),
        args,
      ),
  };
}
