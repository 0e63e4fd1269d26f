// The changes of a member, each as a dialog.
import { Textarea } from '@mantine/core';
import { useState } from 'react';
import { ask, useSender } from '../api/hooks';
import { allocationName } from '../lib/capacity';
import {
  CordonMemberDocument,
  DrainMemberDocument,
  LabelMemberDocument,
  PlanDrainMemberDocument,
  PlanRemoveMemberDocument,
  PlanRemoveMembersDocument,
  PlanReplaceMemberDocument,
  RecoverMemberDocument,
  RemoveMemberDocument,
  RemoveMembersDocument,
  ReplaceMemberDocument,
  UncordonMemberDocument,
} from '../generated/graphql';
import type { MemberBitsFragment } from '../generated/graphql';
import { plural } from '../lib/format';
import { ChangeDialog } from '../changes/ChangeDialog';
import { DeadlineField, EndingFields, PlaceFields, endOf, firstPlace, intentOf, placeProblem } from './fields';
import type { Ending, Place } from './fields';
import { needsReason } from '../changes/flow';
import { labelText, labelsOf, readLabels } from './labels';
import type { MemberAct } from './rules';

/** The properties of every dialog of a member. */
export interface MemberDialogProps {
  readonly member: MemberBitsFragment;
  readonly instanceId: string;
  /** Whether a removal is by force unless the person chooses otherwise. */
  readonly force?: boolean;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

const ending: Ending = { force: false, onDeadline: 'FAIL', deadline: '3600' };

/** Returns a member's display name. */
export function memberName(member: Pick<MemberBitsFragment, 'componentKey' | 'index'>): string {
  return `${member.componentKey} ${member.index}`;
}

/** The dialog of an act. */
export function MemberDialog({ act, ...props }: MemberDialogProps & { act: MemberAct }) {
  switch (act) {
    case 'drain':
      return <DrainDialog {...props} />;
    case 'remove':
      return <RemoveDialog {...props} />;
    case 'replace':
      return <ReplaceDialog {...props} />;
    case 'label':
      return <LabelDialog {...props} />;
    case 'cordon':
      return <PlainDialog {...props} kind="cordon" />;
    case 'uncordon':
      return <PlainDialog {...props} kind="uncordon" />;
    case 'recover':
      return <PlainDialog {...props} kind="recover" />;
  }
}

const endingFields = ['force', 'onDeadline', 'deadlineSeconds'];

function DrainDialog({ member, onClose, onDone }: MemberDialogProps) {
  const [value, setValue] = useState(ending);
  const send = useSender(DrainMemberDocument);
  return (
    <ChangeDialog
      onClose={onClose}
      onDone={onDone}
      change={{
        title: `Drain ${memberName(member)}`,
        act: 'Drain',
        danger: value.force,
        fields: endingFields,
        reasonNeeded: needsReason(value),
        intro:
          'It takes no new work, and running work is given time to finish. The member stays and can be returned to service.',
        plan: () =>
          ask(PlanDrainMemberDocument, { input: { memberId: member.id, ...endOf(value) } }).then((answer) =>
            answer.problem === undefined ? { data: answer.data.planDrainMember } : answer,
          ),
        send: (given) => send({ memberId: member.id, ...endOf(value), ...given }),
        form: (errors) => (
          <EndingFields
            value={value}
            onChange={setValue}
            errors={errors}
            forceHelp="Does not wait for running work: that work is lost."
          />
        ),
      }}
    />
  );
}

function RemoveDialog({ member, force = false, onClose, onDone }: MemberDialogProps) {
  const [value, setValue] = useState({ ...ending, force });
  const send = useSender(RemoveMemberDocument);
  return (
    <ChangeDialog
      onClose={onClose}
      onDone={onDone}
      change={{
        title: `Remove ${memberName(member)}`,
        act: 'Remove',
        danger: true,
        fields: endingFields,
        reasonNeeded: needsReason(value),
        intro:
          'It is drained first and then removed. The removal is complete when its node has proved that nothing of it is left.',
        plan: () =>
          ask(PlanRemoveMemberDocument, { input: { memberId: member.id, ...endOf(value) } }).then((answer) =>
            answer.problem === undefined ? { data: answer.data.planRemoveMember } : answer,
          ),
        send: (given) => send({ memberId: member.id, ...endOf(value), ...given }),
        form: (errors) => (
          <EndingFields
            value={value}
            onChange={setValue}
            errors={errors}
            forceHelp="Running work is lost. Where the node does not answer, what is left is listed as an orphan and cleaned up once it answers."
          />
        ),
      }}
    />
  );
}

/** Removing several members by one operation. */
export function RemoveSeveralDialog({
  members,
  onClose,
  onDone,
}: {
  members: readonly MemberBitsFragment[];
  onClose: () => void;
  onDone: () => void;
}) {
  const [value, setValue] = useState(ending);
  const send = useSender(RemoveMembersDocument);
  const what = { memberIds: members.map((member) => member.id), ...endOf(value) };
  return (
    <ChangeDialog
      onClose={onClose}
      onDone={onDone}
      change={{
        title: `Remove ${plural(members.length, 'member')}`,
        act: 'Remove',
        danger: true,
        fields: [...endingFields, 'memberIds'],
        reasonNeeded: needsReason(value),
        intro: `${members.map(memberName).join(', ')}: they are drained first and then removed, all of them or none. The removal is complete when the nodes have proved that nothing of them is left.`,
        plan: () =>
          ask(PlanRemoveMembersDocument, { input: what }).then((answer) =>
            answer.problem === undefined ? { data: answer.data.planRemoveMembers } : answer,
          ),
        send: (given) => send({ ...what, ...given }),
        form: (errors) => (
          <div className="stack">
            {[...errors]
              .filter(([path]) => path.startsWith('memberIds'))
              .map(([path, message]) => (
                <p key={path} className="small" role="alert" style={{ color: 'var(--bad)' }}>
                  {message}
                </p>
              ))}
            <EndingFields
              value={value}
              onChange={setValue}
              errors={errors}
              forceHelp="Running work is lost. Where a node does not answer, what is left is listed as an orphan and cleaned up once it answers."
            />
          </div>
        ),
      }}
    />
  );
}

function ReplaceDialog({ member, instanceId, onClose, onDone }: MemberDialogProps) {
  const [value, setValue] = useState(ending);
  const [place, setPlace] = useState<Place>({ ...firstPlace, mode: 'same' });
  const send = useSender(ReplaceMemberDocument);
  const where = {
    memberId: member.id,
    allocationId: place.mode === 'existing' ? (place.allocationIds[0] ?? null) : null,
    intent: intentOf(place),
    ...endOf(value),
  };
  const problem = placeProblem(place);
  const healthy = member.health === 'HEALTHY';
  return (
    <ChangeDialog
      onClose={onClose}
      onDone={onDone}
      change={{
        title: `Replace ${memberName(member)}`,
        act: 'Replace',
        danger: true,
        fields: [...endingFields, 'allocationId', 'intent'],
        reasonNeeded: needsReason({ ...value, always: healthy }),
        intro: `A new ${member.componentKey} joins first, then this one is drained and removed.${healthy ? ' The member is healthy, so a reason is required.' : ''}`,
        wrong: new Map(problem === undefined ? [] : [['allocationId', problem]]),
        plan: () =>
          ask(PlanReplaceMemberDocument, { input: where }).then((answer) =>
            answer.problem === undefined ? { data: answer.data.planReplaceMember } : answer,
          ),
        send: (given) => send({ ...where, ...given }),
        form: (errors) => (
          <div className="stack">
            <PlaceFields
              value={place}
              onChange={setPlace}
              errors={errors}
              instanceId={instanceId}
              single
              same={
                member.allocation === null
                  ? 'In the place of the old member.'
                  : `In ${allocationName(member.allocation)}${member.node === null ? '' : `, on ${member.node.name}`}.`
              }
            />
            <EndingFields
              value={value}
              onChange={setValue}
              errors={errors}
              forceHelp="Does not wait for running work on the old member: that work is lost."
            />
          </div>
        ),
      }}
    />
  );
}

function LabelDialog({ member, onClose, onDone }: MemberDialogProps) {
  const [text, setText] = useState(() => labelText(labelsOf(member.labels)));
  const send = useSender(LabelMemberDocument);
  const read = readLabels(text);
  return (
    <ChangeDialog
      onClose={onClose}
      onDone={onDone}
      change={{
        title: `Labels of ${memberName(member)}`,
        act: 'Save labels',
        fields: ['labels'],
        reasonNeeded: false,
        intro: 'The app can use labels to decide what runs where.',
        wrong: new Map('wrong' in read ? [['labels', read.wrong]] : []),
        send: (given) =>
          send({
            memberId: member.id,
            labels: 'labels' in read ? read.labels : {},
            reason: given.reason,
            deadlineSeconds: 300,
          }),
        form: (errors) => (
          <Textarea
            label="Labels"
            description="One name=value per line; labels that are not listed are removed"
            autosize
            minRows={3}
            maxRows={12}
            spellCheck={false}
            styles={{ input: { fontFamily: 'var(--mantine-font-family-monospace)' } }}
            value={text}
            onChange={(event) => setText(event.currentTarget.value)}
            error={errors.get('labels')}
            data-autofocus
          />
        ),
      }}
    />
  );
}

const plainWords = {
  cordon: {
    title: 'Cordon',
    act: 'Cordon',
    intro: 'It takes no new work. Running work continues, and the member can be returned to service at any time.',
  },
  uncordon: { title: 'Return to service:', act: 'Return to service', intro: 'It takes new work again.' },
  recover: {
    title: 'Recover',
    act: 'Recover',
    intro: 'It could not join. It is tried again in the same place; the rest of the workload is not affected.',
  },
} as const;

function PlainDialog({ member, kind, onClose, onDone }: MemberDialogProps & { kind: keyof typeof plainWords }) {
  const [deadline, setDeadline] = useState('900');
  const senders = {
    cordon: useSender(CordonMemberDocument),
    uncordon: useSender(UncordonMemberDocument),
    recover: useSender(RecoverMemberDocument),
  };
  const words = plainWords[kind];
  return (
    <ChangeDialog
      onClose={onClose}
      onDone={onDone}
      change={{
        title: `${words.title} ${memberName(member)}`,
        act: words.act,
        fields: ['deadlineSeconds'],
        reasonNeeded: false,
        intro: words.intro,
        send: ({ reason }) => senders[kind]({ memberId: member.id, reason, deadlineSeconds: Number(deadline) }),
        form: (errors) => <DeadlineField value={deadline} onChange={setDeadline} errors={errors} />,
      }}
    />
  );
}
