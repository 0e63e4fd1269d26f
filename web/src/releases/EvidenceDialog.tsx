// Submitting a report for a version: its digest is computed here over the exact bytes of the file.
import { FileInput, Select } from '@mantine/core';
import { useState } from 'react';
import { plain } from '../api/errors';
import { tell } from '../api/hooks';
import { ChangeDialog } from '../changes/ChangeDialog';
import { SubmitEvidenceDocument } from '../generated/graphql';
import type { EvidenceKind } from '../generated/graphql';
import { digestOf } from './digest';

/** The largest report, in bytes. */
const maxReport = 512 * 1024;

/** The dialog, open as long as it is mounted. */
export function EvidenceDialog({
  manifestId,
  onClose,
  onDone,
}: {
  manifestId: string;
  onClose: () => void;
  onDone: () => void;
}) {
  const [kind, setKind] = useState<EvidenceKind>('CONFORMANCE');
  const [file, setFile] = useState<File | null>(null);
  const wrong = new Map<string, string>();
  if (file === null) wrong.set('report', 'Choose the report.');
  else if (file.size > maxReport) wrong.set('report', 'At most 512 KiB.');
  return (
    <ChangeDialog
      onClose={onClose}
      onDone={onDone}
      change={{
        title: 'Submit a report',
        act: 'Submit',
        fields: ['report', 'digest', 'kind'],
        wrong,
        reasonNeeded: false,
        reasonKept: false,
        intro: (
          <>
            The file that <code>appctl adapter check --report</code> writes. It is stored unchanged.
          </>
        ),
        send: async () => {
          const report = await (file ?? new Blob()).text();
          const digest = await digestOf(report);
          if (digest === undefined)
            return {
              problem: plain(
                'BAD_VALUE',
                'The browser cannot compute a digest here: open the console over HTTPS, or by localhost on the server’s machine.',
                '',
              ),
            };
          return tell(SubmitEvidenceDocument, { input: { manifestId, kind, report, digest } });
        },
        form: (errors) => (
          <div className="stack">
            <Select
              label="What it shows"
              allowDeselect={false}
              data={[
                { value: 'CONFORMANCE', label: 'Conformance of the adapter' },
                { value: 'TENANCY', label: 'Negative tests between tenants' },
              ]}
              value={kind}
              onChange={(next) => setKind(next === 'TENANCY' ? 'TENANCY' : 'CONFORMANCE')}
              error={errors.get('kind')}
            />
            <FileInput
              label="Report"
              accept="application/json,.json"
              required
              value={file}
              onChange={setFile}
              error={errors.get('report') ?? errors.get('digest')}
            />
          </div>
        ),
      }}
    />
  );
}
