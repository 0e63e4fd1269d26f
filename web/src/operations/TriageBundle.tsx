// The support bundle of a request: what it would contain and what not, before it is downloaded.
import { Button, Modal } from '@mantine/core';
import { useState } from 'react';
import type { Problem } from '../api/errors';
import { ask, useRead } from '../api/hooks';
import { SupportBundleFileDocument, SupportBundlePreviewDocument } from '../generated/graphql';
import type { SupportBundlePreviewQuery } from '../generated/graphql';
import { save } from '../lib/save';
import { ProblemNotice } from '../ui/Problem';
import { Card, DataTable, Loading } from '../ui/parts';

type Preview = SupportBundlePreviewQuery['supportBundle'];

/** Offers the bundle. */
export function BundleCard({ id }: { id: string }) {
  const [open, setOpen] = useState(false);
  return (
    <Card title="Support bundle">
      <div className="stack">
        <p className="soft">
          A file for the people who help you: ids, states, codes and times of this request. It has nothing that your
          people, apps and machines have written, except messages of events and blockers, checked word by word.
        </p>
        <div className="row">
          <Button variant="default" onClick={() => setOpen(true)}>
            See what is in it…
          </Button>
        </div>
      </div>
      {open && <BundleDialog id={id} onClose={() => setOpen(false)} />}
    </Card>
  );
}

function BundleDialog({ id, onClose }: { id: string; onClose: () => void }) {
  const { data, problem } = useRead(SupportBundlePreviewDocument, { id });
  const [failed, setFailed] = useState<Problem>();
  const [busy, setBusy] = useState(false);
  const download = async () => {
    setBusy(true);
    const answer = await ask(SupportBundleFileDocument, { id });
    setBusy(false);
    setFailed(answer.problem);
    if (answer.data !== undefined) save(answer.data.supportBundle.name, answer.data.supportBundle.content);
  };
  return (
    <Modal opened onClose={onClose} title={<b>Support bundle</b>} size="xl">
      <div className="stack">
        {problem !== undefined && <ProblemNotice problem={problem} />}
        {failed !== undefined && <ProblemNotice problem={failed} />}
        {data === undefined ? (
          problem === undefined && <Loading lines={8} />
        ) : (
          <BundleView bundle={data.supportBundle} />
        )}
        <div className="dialog-foot">
          <Button variant="default" onClick={onClose}>
            Close
          </Button>
          <Button loading={busy} disabled={data === undefined} onClick={() => void download()}>
            Download
          </Button>
        </div>
      </div>
    </Modal>
  );
}

/** What is in a bundle, and what is not. */
export function BundleView({ bundle }: { bundle: Preview }) {
  return (
    <>
      <p className="strong">In it</p>
      <div className="framed">
        <DataTable
          label="In it"
          rows={bundle.sections}
          keyOf={(row) => row.name}
          columns={[
            { head: 'Section', cell: (row) => <code>{row.name}</code> },
            { head: 'Rows', cell: (row) => <span className="num">{row.rows}</span> },
            { head: 'Fields', cell: (row) => <span className="wrap-any small">{row.fields.join(', ')}</span> },
          ]}
        />
      </div>
      <p className="strong">Not in it</p>
      <div className="framed">
        <DataTable
          label="Not in it"
          rows={bundle.leftOut}
          keyOf={(row) => `${row.what} ${row.why}`}
          columns={[
            { head: 'What', cell: (row) => row.what },
            { head: 'How many', cell: (row) => (row.count === 0 ? '—' : <span className="num">{row.count}</span>) },
            { head: 'Why', cell: (row) => row.why },
          ]}
        />
      </div>
    </>
  );
}
