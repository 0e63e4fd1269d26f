// Canceling an operation while it is safe, and retrying one that failed or was canceled.
import { Button } from '@mantine/core';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { tell, useSender } from '../api/hooks';
import { useSession } from '../api/session';
import { ChangeDialog } from '../changes/ChangeDialog';
import { CancelOperationDocument, RetryOperationDocument } from '../generated/graphql';
import type { OperationState } from '../generated/graphql';
import { operationName } from '../lib/format';
import { Icon } from '../ui/Icons';
import type { Detail } from './detail';

/** The kinds that cannot be canceled from the moment they are requested. */
const unstoppable: ReadonlySet<string> = new Set(['INSTANCE_DECOMMISSION', 'ALLOCATION_RELEASE']);

/** Reports whether its cancellation can still be requested. */
export function cancelable(kind: string, state: OperationState): boolean {
  return !unstoppable.has(kind) && (state === 'PENDING' || state === 'RUNNING');
}

/** Reports whether it can be retried. */
export function retryable(state: OperationState): boolean {
  return state === 'FAILED' || state === 'CANCELED';
}

/** The two buttons, each where it applies and is allowed. */
export function CancelRetry({
  detail,
  state,
  refresh,
}: {
  detail: Detail;
  state: OperationState;
  refresh: () => void;
}) {
  const { can } = useSession();
  const [asked, setAsked] = useState<'cancel' | 'retry'>();
  const close = () => setAsked(undefined);
  const props = {
    detail,
    onClose: close,
    onDone: () => {
      close();
      refresh();
    },
  };
  return (
    <>
      {cancelable(detail.kind, state) && can('operation.cancel') && (
        <Button variant="default" leftSection={<Icon name="cross" size={14} />} onClick={() => setAsked('cancel')}>
          Cancel the operation
        </Button>
      )}
      {retryable(state) && can('operation.retry') && (
        <Button leftSection={<Icon name="retry" size={14} />} onClick={() => setAsked('retry')}>
          Try again
        </Button>
      )}
      {asked === 'cancel' && <CancelDialog {...props} />}
      {asked === 'retry' && <RetryDialog {...props} />}
    </>
  );
}

interface Props {
  detail: Pick<Detail, 'id' | 'kind'>;
  onClose: () => void;
  onDone: () => void;
}

/** Requests the cancellation of an operation. */
export function CancelDialog({ detail, onClose, onDone }: Props) {
  return (
    <ChangeDialog
      onClose={onClose}
      onDone={onDone}
      change={{
        title: `Cancel: ${operationName(detail.kind)}`,
        act: 'Request cancellation',
        dismiss: 'Let it go on',
        danger: true,
        fields: [],
        reasonNeeded: false,
        intro:
          'What was started is undone as far as that is safe. The app decides whether it is too late, and its answer is shown here; until then the operation continues.',
        send: ({ reason }) => tell(CancelOperationDocument, { input: { operationId: detail.id, reason } }),
        form: () => null,
      }}
    />
  );
}

/** Requests the same change again. */
export function RetryDialog({ detail, onClose, onDone }: Props) {
  const navigate = useNavigate();
  const send = useSender(RetryOperationDocument);
  return (
    <ChangeDialog
      onClose={onClose}
      onDone={onDone}
      change={{
        title: `Try again: ${operationName(detail.kind)}`,
        act: 'Try again',
        fields: ['deadlineSeconds'],
        reasonNeeded: false,
        intro:
          'A new operation requests the same change again, with the same deadline. All rules are checked again against the current state.',
        send: async ({ reason }) => {
          const answer = await send({ operationId: detail.id, reason });
          if (answer.data !== undefined)
            void navigate({ to: '/operations/$id', params: { id: answer.data.retryOperation.operation.id } });
          return answer;
        },
        form: () => null,
      }}
    />
  );
}
