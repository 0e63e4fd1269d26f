import type { OperationDetailQuery } from '../generated/graphql';

/** An operation as its page reads it. */
export type Detail = OperationDetailQuery['operation'];
