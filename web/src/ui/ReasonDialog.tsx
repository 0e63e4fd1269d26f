// The confirmation of a destructive action, with a reason for the audit log.
import { Button, Checkbox, Modal, Textarea } from '@mantine/core';
import { useState } from 'react';
import type { ReactNode, SyntheticEvent } from 'react';
import type { Problem } from '../api/errors';
import { ProblemNotice } from './Problem';

/** The texts and callbacks of the dialog. */
export interface ReasonDialogProps {
  readonly opened: boolean;
  readonly title: string;
  readonly children: ReactNode;
  /** The label of the checkbox that confirms the consequences. */
  readonly confirm: string;
  readonly act: string;
  readonly busy: boolean;
  readonly problem: Problem | undefined;
  readonly onClose: () => void;
  readonly onAct: (reason: string) => void;
}

/** The longest reason, in characters. */
const maxReason = 500;

/** The dialog; the reason is stored in the audit log. */
export function ReasonDialog(props: ReasonDialogProps) {
  return (
    <Modal opened={props.opened} onClose={props.onClose} title={<b>{props.title}</b>}>
      <ReasonForm {...props} />
    </Modal>
  );
}

function ReasonForm({ children, confirm, act, busy, problem, onClose, onAct }: ReasonDialogProps) {
  const [reason, setReason] = useState('');
  const [sure, setSure] = useState(false);
  const send = (event: SyntheticEvent) => {
    event.preventDefault();
    if (sure && reason.trim() !== '') onAct(reason.trim());
  };
  return (
    <form className="stack" onSubmit={send}>
      <div className="soft">{children}</div>
      <Textarea
        label="Reason"
        description="Stored in the audit log"
        required
        autosize
        minRows={2}
        maxRows={6}
        maxLength={maxReason}
        value={reason}
        onChange={(event) => setReason(event.currentTarget.value)}
        data-autofocus
      />
      <Checkbox label={confirm} checked={sure} onChange={(event) => setSure(event.currentTarget.checked)} />
      {problem !== undefined && <ProblemNotice problem={problem} />}
      <div className="row" style={{ justifyContent: 'flex-end' }}>
        <Button variant="default" onClick={onClose}>
          Cancel
        </Button>
        <Button type="submit" color="red" loading={busy} disabled={!sure || reason.trim() === ''}>
          {act}
        </Button>
      </div>
    </form>
  );
}
