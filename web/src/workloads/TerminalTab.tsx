// A shell in a member: its opening needs a reason and is recorded.
import { Button, Select, TextInput } from '@mantine/core';
import { Suspense, lazy, useState } from 'react';
import type { SyntheticEvent } from 'react';
import { useSession } from '../api/session';
import { useDraft } from '../api/useDraft';
import { memberName } from '../lifecycle/MemberDialogs';
import type { Workload } from '../lifecycle/workload';
import type { End, Opening } from '../terminal/connection';
import { DeniedButton } from '../ui/Denied';
import { Notice, ProblemNotice } from '../ui/Problem';
import { Card, Loading } from '../ui/parts';
import { useMembers } from './useMembers';

const Screen = lazy(() => import('../terminal/Screen'));

/** Bash where the member has it, else the shell that every system has. */
const shell = ['sh', '-c', 'exec "$(command -v bash || command -v sh)"'];

/** The terminal that is or was open. */
interface Opened {
  readonly opening: Opening;
  readonly name: string;
  readonly nth: number;
  readonly end: End | 'opening' | 'open';
}

/** The tab. */
export function TerminalTab({ workload, of }: { workload: Workload; of: string | undefined }) {
  const { can } = useSession();
  const key = `${workload.permissionFamily}.member.exec`;
  const [opened, setOpened] = useState<Opened>();
  const went = (end: Opened['end']) => setOpened((before) => (before === undefined ? before : { ...before, end }));
  const live = opened?.end === 'open' || opened?.end === 'opening';
  return (
    <Card
      title={opened === undefined ? 'Terminal' : `Terminal in ${opened.name}`}
      label="Terminal"
      aside={
        opened !== undefined && (
          <Button size="compact-xs" variant="subtle" onClick={() => setOpened(undefined)}>
            {live ? 'End it' : 'Close'}
          </Button>
        )
      }
    >
      {!can(key) ? (
        <DeniedButton label="Open a terminal" permissionKey={key} objectId={workload.id} />
      ) : opened === undefined ? (
        <OpeningForm
          workload={workload}
          of={of}
          onOpen={(opening, name) => setOpened({ opening, name, nth: Date.now(), end: 'opening' })}
        />
      ) : (
        <div className="stack-s" data-terminal={typeof opened.end === 'string' ? opened.end : 'ended'}>
          <Suspense fallback={<Loading lines={6} />}>
            <Screen
              key={opened.nth}
              opening={opened.opening}
              label={`Terminal in ${opened.name}`}
              onOpen={() => went('open')}
              onEnd={went}
            />
          </Suspense>
          <Ended end={opened.end} onAgain={() => setOpened({ ...opened, nth: Date.now(), end: 'opening' })} />
        </div>
      )}
    </Card>
  );
}

/** How the terminal ended. */
function Ended({ end, onAgain }: { end: Opened['end']; onAgain: () => void }) {
  if (end === 'open') return <p className="small faint">Shift and Tab leave the terminal.</p>;
  if (end === 'opening') return <p className="small faint">Opening …</p>;
  return (
    <div className="stack-s" role="status">
      {end.problem !== undefined ? (
        <ProblemNotice problem={end.problem} />
      ) : (
        <p data-exit={end.code}>
          {end.code === 0 ? 'It has ended with exit code 0.' : `It has ended with exit code ${end.code}.`}
        </p>
      )}
      <div>
        <Button size="xs" variant="default" onClick={onAgain}>
          Open again for the same reason
        </Button>
      </div>
    </div>
  );
}

/** The member, the user and the reason. */
function OpeningForm({
  workload,
  of,
  onOpen,
}: {
  workload: Workload;
  of: string | undefined;
  onOpen: (opening: Opening, name: string) => void;
}) {
  const { members } = useMembers(workload);
  const there = members.filter((each) => each.status !== 'REMOVED' && each.node !== null);
  const [chosen, setChosen] = useState(of);
  const [user, setUser] = useDraft(`${workload.id} terminal user`, () => '');
  const [reason, setReason] = useDraft(`${workload.id} terminal reason`, () => '');
  const [tried, setTried] = useState(false);
  const member = there.find((each) => each.id === chosen) ?? (there.length === 1 ? there[0] : undefined);
  const short = reason.trim().length < leastReason;
  const open = (event: SyntheticEvent) => {
    event.preventDefault();
    setTried(true);
    if (member === undefined || short) return;
    onOpen({ member: member.id, command: shell, user: user.trim(), reason: reason.trim() }, memberName(member));
  };
  return (
    <form className="stack" onSubmit={open} noValidate aria-label="Open a terminal">
      <Notice tone="warn" icon="warn">
        <b>High risk, and recorded.</b> In a terminal you can read and change all that is in the member, secrets too.
        The audit log keeps who opened it, when, as which user and why; not what is typed or printed.
      </Notice>
      <div className="form-grid">
        <Select
          label="Member"
          placeholder={there.length === 0 ? 'No member is on a node' : 'Choose a member'}
          data={there.map((each) => ({ value: each.id, label: memberName(each) }))}
          value={member?.id ?? null}
          onChange={(value) => setChosen(value ?? undefined)}
          error={tried && member === undefined ? 'Choose a member.' : undefined}
        />
        <TextInput
          label="User"
          description="A user of the member; root when left empty"
          value={user}
          maxLength={128}
          onChange={(event) => setUser(event.currentTarget.value)}
        />
      </div>
      <TextInput
        label="Reason"
        description="Stored in the audit log"
        required
        value={reason}
        maxLength={500}
        onChange={(event) => setReason(event.currentTarget.value)}
        error={tried && short ? 'Say why, in at least three characters.' : undefined}
      />
      <div>
        <Button type="submit" color="red" disabled={there.length === 0}>
          Open a terminal
        </Button>
      </div>
    </form>
  );
}

/** The shortest reason, in characters. */
const leastReason = 3;
