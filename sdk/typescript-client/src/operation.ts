// The handle of an operation: it needs only the id, so a program that was restarted goes on with it.
import type { Client } from './client.js';
import { plainFault, PlatformError } from './errors.js';
import { GetOperationDocument, WatchOperationDocument } from './generated/operations.js';
import type { OperationDetailFragment, OperationState } from './generated/operations.js';

const endStates: ReadonlySet<OperationState> = new Set<OperationState>(['SUCCEEDED', 'FAILED', 'CANCELED']);

/** hasEnded reports whether an operation in this state has ended. */
export function hasEnded(state: OperationState): boolean {
  return endStates.has(state);
}

/** OperationHandle follows one operation. */
export class OperationHandle {
  constructor(
    private readonly client: Client,
    readonly id: string,
  ) {}

  /** get reads the operation once. */
  async get(): Promise<OperationDetailFragment> {
    return (await this.client.request(GetOperationDocument, { id: this.id })).operation;
  }

  /** watch returns the operation as it is now and each time it changes, until it has ended. */
  async *watch(signal?: AbortSignal): AsyncGenerator<OperationDetailFragment, void, undefined> {
    let last = '';
    const feed = this.client.subscribe(
      WatchOperationDocument,
      { operationId: this.id },
      { completes: true, ...(signal === undefined ? {} : { signal }) },
    );
    for await (const { operationProgress } of feed) {
      const now = JSON.stringify(operationProgress);
      if (now === last) continue; // a reconnect repeats the last state
      last = now;
      yield operationProgress;
      if (hasEnded(operationProgress.state)) return;
    }
  }

  /** wait follows the operation to its end and returns it as it ended, well or badly: read its state. */
  async wait(signal?: AbortSignal): Promise<OperationDetailFragment> {
    for await (const operation of this.watch(signal)) if (hasEnded(operation.state)) return operation;
    const operation = await this.get(); // the feed may complete before it shows the end
    if (hasEnded(operation.state)) return operation;
    const message = "the platform ended the feed before the operation ended";
    throw new PlatformError(plainFault('UNAVAILABLE', message, '', true));
  }
}
