// One action with a reason, in the dialog of every change.
import type { ReactNode } from 'react';
import type { Answer } from '../api/hooks';
import { ChangeDialog } from './ChangeDialog';

/** Asks for a reason and does one thing; open as long as it is mounted. */
export function AskDialog({ title, act, danger = false, reasonNeeded = false, children, send, onClose, onDone }: {
  title: string; act: string; danger?: boolean; reasonNeeded?: boolean; children: ReactNode;
  send: (reason: string | null) => Promise<Answer<unknown>>; onClose: () => void; onDone: () => void;
}) {
  return (
    <ChangeDialog
      onClose={onClose} onDone={onDone}
      change={{ title, act, danger, fields: [], reasonNeeded, intro: children, send: ({ reason }) => send(reason), form: () => null }}
    />
  );
}
