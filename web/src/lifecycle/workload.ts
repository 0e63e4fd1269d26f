import type { WorkloadQuery } from '../generated/graphql';

/** A workload as its page reads it. */
export type Workload = WorkloadQuery['instance'];
