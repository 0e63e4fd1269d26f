// The people of the project's tenant: adding, inviting, and who has not accepted yet.
import { Button, SegmentedControl } from '@mantine/core';
import { useMemo, useState } from 'react';
import type { Problem } from '../api/errors';
import { tell } from '../api/hooks';
import { useRows } from '../api/pages';
import { useSession } from '../api/session';
import { InvitePersonDocument, PeopleDocument, RevokeInvitationDocument } from '../generated/graphql';
import type { PeopleQuery, PersonBitsFragment } from '../generated/graphql';
import { fullTime } from '../lib/format';
import { AskDialog } from '../changes/AskDialog';
import { Icon } from '../ui/Icons';
import { ProblemNotice } from '../ui/Problem';
import { RowsCard } from '../ui/Rows';
import { SecretOnce } from '../ui/SecretOnce';
import { Status } from '../ui/Status';
import { Ago, Copy, Empty } from '../ui/parts';
import { PersonDialog } from './PersonDialog';
import { stateOf } from './invitations';

const pick = (data: PeopleQuery) => data.users;

/** The list; an invitation's link is shown once. */
export function PeopleTab() {
  const { project, can } = useSession();
  const tenantId = project?.tenantId ?? '';
  const [waiting, setWaiting] = useState(false);
  const [adding, setAdding] = useState(false);
  const [revoked, setRevoked] = useState<PersonBitsFragment>();
  const [link, setLink] = useState<string>();
  const [problem, setProblem] = useState<Problem>();
  const list = useRows(
    PeopleDocument,
    useMemo(() => ({ tenantId, waiting }), [tenantId, waiting]),
    pick,
  );
  const invite = async (row: PersonBitsFragment) => {
    const answer = await tell(InvitePersonDocument, { userId: row.id });
    setProblem(answer.problem);
    setLink(answer.data?.inviteUser.url);
    list.refresh();
  };
  const columns = [
    {
      head: 'Who',
      cell: (row: PersonBitsFragment) => (
        <span>
          <span className="strong">{row.displayName}</span>
          <span className="sub">
            <Copy value={row.id} what="id" />
          </span>
        </span>
      ),
    },
    { head: 'Address', cell: (row: PersonBitsFragment) => <span className="wrap-any">{row.email}</span> },
    { head: 'State', cell: (row: PersonBitsFragment) => <PersonState row={row} /> },
    { head: 'Last login', cell: (row: PersonBitsFragment) => <Ago at={row.lastLoginAt} /> },
    {
      head: '',
      right: true,
      cell: (row: PersonBitsFragment) =>
        stateOf(row) !== 'waiting' || !can('identity.user.create') ? null : (
          <span className="row" style={{ justifyContent: 'flex-end' }}>
            <Button size="compact-xs" variant="default" onClick={() => void invite(row)}>
              {row.invitationEndsAt === null ? 'Invite' : 'Invite again'}
            </Button>
            {row.invitationEndsAt !== null && (
              <Button size="compact-xs" variant="default" color="red" onClick={() => setRevoked(row)}>
                Revoke
              </Button>
            )}
          </span>
        ),
    },
  ];
  return (
    <>
      {problem !== undefined && <ProblemNotice problem={problem} />}
      <RowsCard<PersonBitsFragment>
        list={list}
        label="People"
        columns={columns}
        empty={<Empty icon="audit" title={waiting ? 'No one waits to accept' : 'No people'} />}
      >
        <div className="card-head">
          <SegmentedControl
            size="xs"
            aria-label="Which people"
            value={waiting ? 'waiting' : 'all'}
            onChange={(next) => setWaiting(next === 'waiting')}
            data={[
              { value: 'all', label: 'All' },
              { value: 'waiting', label: 'Not accepted yet' },
            ]}
          />
          {can('identity.user.create') && (
            <Button size="xs" leftSection={<Icon name="plus" size={14} />} onClick={() => setAdding(true)}>
              Add a person
            </Button>
          )}
        </div>
      </RowsCard>
      {adding && <PersonDialog tenantId={tenantId} onClose={() => setAdding(false)} onDone={list.refresh} />}
      {revoked !== undefined && (
        <AskDialog
          title={`Revoke the invitation of ${revoked.displayName}`}
          act="Revoke"
          danger
          send={(reason) => tell(RevokeInvitationDocument, { userId: revoked.id, reason })}
          onClose={() => setRevoked(undefined)}
          onDone={list.refresh}
        >
          The link stops working immediately. You can invite {revoked.email} again.
        </AskDialog>
      )}
      <SecretOnce title="Invitation" secret={link} onClose={() => setLink(undefined)} />
    </>
  );
}

function PersonState({ row }: { row: PersonBitsFragment }) {
  if (row.disabledAt !== null) return <Status state="REMOVED" bare label="Disabled" title={fullTime(row.disabledAt)} />;
  if (stateOf(row) === 'active') return <Status state="ACTIVE" bare label="Active" />;
  return (
    <Status
      state="DRAINING"
      bare
      label={row.invitationEndsAt === null ? 'Must be invited' : `Invited until ${fullTime(row.invitationEndsAt)}`}
    />
  );
}
