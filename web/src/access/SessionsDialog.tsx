// The viewer's own logins.
import { Button, Modal } from '@mantine/core';
import { useState } from 'react';
import type { Problem } from '../api/errors';
import { tell, useRead } from '../api/hooks';
import { logout } from '../api/client';
import { EndSessionDocument, LogoutEverywhereDocument, MySessionsDocument } from '../generated/graphql';
import type { MySessionsQuery } from '../generated/graphql';
import { words } from '../lib/format';
import { ProblemNotice } from '../ui/Problem';
import { Ago, DataTable, Loading } from '../ui/parts';

type Row = MySessionsQuery['viewer']['sessions'][number];

/** The dialog: each login can be ended, or all of them. */
export function SessionsDialog({ onClose }: { onClose: () => void }) {
  const { data, problem, refresh } = useRead(MySessionsDocument, {});
  const [failed, setFailed] = useState<Problem>();
  const end = async (row: Row) => {
    const answer = await tell(EndSessionDocument, { sessionId: row.id });
    setFailed(answer.problem);
    refresh();
  };
  const everywhere = async () => {
    const answer = await tell(LogoutEverywhereDocument, { userId: null, reason: null });
    setFailed(answer.problem);
    if (answer.problem === undefined) await logout();
  };
  const columns = [
    {
      head: 'Login',
      cell: (row: Row) => (
        <span>
          <span className="strong wrap-any">{row.agent === '' ? 'Unknown client' : row.agent}</span>
          <span className="sub">
            {words(row.method)} from {row.origin === '' ? 'an unknown address' : row.origin}
          </span>
        </span>
      ),
    },
    { head: 'Started', cell: (row: Row) => <Ago at={row.createdAt} /> },
    {
      head: '',
      right: true,
      cell: (row: Row) =>
        row.current ? (
          <span className="tag">this session</span>
        ) : (
          <Button size="compact-xs" variant="default" onClick={() => void end(row)}>
            End
          </Button>
        ),
    },
  ];
  return (
    <Modal opened onClose={onClose} title={<b>Your sessions</b>} size="lg">
      <div className="stack">
        {(failed ?? problem) !== undefined && <ProblemNotice problem={(failed ?? problem) as Problem} />}
        {data === undefined ? (
          <Loading />
        ) : (
          <div className="framed">
            <DataTable label="Sessions" columns={columns} rows={data.viewer.sessions} keyOf={(row) => row.id} />
          </div>
        )}
        <div className="row" style={{ justifyContent: 'flex-end' }}>
          <Button variant="default" color="red" onClick={() => void everywhere()}>
            Log out everywhere
          </Button>
        </div>
      </div>
    </Modal>
  );
}
