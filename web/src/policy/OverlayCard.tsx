// The overlay of one level: its rules, its history, and writing it with a preview of what would newly be denied.
import { Button, JsonInput } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import type { Problem } from '../api/errors';
import { ask, tell, useRead } from '../api/hooks';
import { useSession } from '../api/session';
import { PolicyOverlaysDocument, PreviewPolicyDocument, SetPolicyDocument } from '../generated/graphql';
import type { PolicyOverlaysQuery, PolicyScope, PreviewBitsFragment } from '../generated/graphql';
import { plural } from '../lib/format';
import { AskDialog } from '../changes/AskDialog';
import { Notice, ProblemNotice } from '../ui/Problem';
import { Ago, Card, Json, Loading } from '../ui/parts';
import { parseDocument, startingDocument } from '../lib/document';

type Overlay = PolicyOverlaysQuery['policyOverlays']['edges'][number]['node'];

interface Place {
  scope: PolicyScope;
  tenantId: string | null;
  projectId: string | null;
  onWritten: () => void;
}

/** The card; a viewer without the permission to write sees only the rules. */
export function OverlayCard(place: Place) {
  const { data, problem, refresh } = useRead(PolicyOverlaysDocument, {
    tenantId: place.tenantId,
    projectId: place.projectId,
  });
  if (data === undefined)
    return (
      <Card title="Overlay">
        {problem === undefined ? <Loading /> : <ProblemNotice problem={problem} onRetry={refresh} />}
      </Card>
    );
  const overlays = data.policyOverlays.edges.map((edge) => edge.node);
  const live = overlays.find((each) => each.supersededAt === null);
  return (
    <>
      <Editor
        key={live?.id ?? 'none'}
        place={place}
        live={live}
        onWritten={() => {
          refresh();
          place.onWritten();
        }}
      />
      {overlays.length > 0 && <History overlays={overlays} />}
    </>
  );
}

function Editor({ place, live, onWritten }: { place: Place; live: Overlay | undefined; onWritten: () => void }) {
  const { can, staff } = useSession();
  const manage = can('policy.manage') && (place.scope !== 'PLATFORM' || staff);
  const [text, setText] = useState(() => JSON.stringify(live?.document ?? startingDocument, null, 2));
  const [preview, setPreview] = useState<PreviewBitsFragment>();
  const [problem, setProblem] = useState<Problem>();
  const [busy, setBusy] = useState(false);
  const [writing, setWriting] = useState(false);
  const parsed = parseDocument(text);
  const input = {
    tenantId: place.tenantId,
    projectId: place.projectId,
    document: parsed.document,
    expectedRevision: live?.revision ?? 0,
  };
  const look = async () => {
    setBusy(true);
    const answer = await ask(PreviewPolicyDocument, { input: { ...input, reason: 'a preview' } });
    setBusy(false);
    setProblem(answer.problem);
    setPreview(answer.data?.previewPolicy);
  };
  const change = (next: string) => {
    setText(next);
    setPreview(undefined);
  };
  if (!manage)
    return (
      <Card title="Overlay">
        {live === undefined ? (
          <p className="soft">This level has no rules of its own.</p>
        ) : (
          <Json value={live.document} label="Rules" />
        )}
      </Card>
    );
  return (
    <Card
      title={live === undefined ? 'No overlay yet' : `Overlay, revision ${live.revision}`}
      aside={
        live !== undefined && (
          <span className="small faint">
            written <Ago at={live.createdAt} />
          </span>
        )
      }
    >
      <div className="stack">
        <JsonInput
          label="Rules"
          description="Lists allow or deny; ceilings set limits. An empty object removes every rule of this level."
          autosize
          minRows={8}
          maxRows={26}
          formatOnBlur
          spellCheck={false}
          value={text}
          onChange={change}
          error={parsed.wrong}
          styles={{ input: { fontFamily: 'var(--mantine-font-family-monospace)', fontSize: 12.5 } }}
        />
        {problem !== undefined && <ProblemNotice problem={problem} />}
        {preview !== undefined && <Preview preview={preview} />}
        <div className="row" style={{ justifyContent: 'flex-end' }}>
          <Button variant="default" loading={busy} disabled={parsed.wrong !== undefined} onClick={() => void look()}>
            See what it would deny
          </Button>
          <Button disabled={preview === undefined || preview.problems.length > 0} onClick={() => setWriting(true)}>
            Save
          </Button>
        </div>
      </div>
      {writing && (
        <AskDialog
          title="Save the overlay"
          act="Save"
          reasonNeeded
          danger={(preview?.newlyDeniedTotal ?? 0) > 0}
          send={(reason) => tell(SetPolicyDocument, { input: { ...input, reason: reason ?? '' } })}
          onClose={() => setWriting(false)}
          onDone={onWritten}
        >
          {deniedWord(preview)}
        </AskDialog>
      )}
    </Card>
  );
}

function deniedWord(preview: PreviewBitsFragment | undefined): string {
  const total = preview?.newlyDeniedTotal ?? 0;
  return total === 0
    ? 'Nothing that exists today would be refused.'
    : `${plural(total, 'thing')} would newly be refused. Running workloads continue, but can no longer be changed where a rule forbids it.`;
}

function Preview({ preview }: { preview: PreviewBitsFragment }) {
  if (preview.problems.length > 0) {
    return (
      <Notice tone="bad" icon="warn" role="alert">
        <b>It would be refused.</b>
        <ul>
          {preview.problems.map((reason, at) => (
            <li key={at} className="said">
              {reason.message} <code>{reason.path}</code>
            </li>
          ))}
        </ul>
      </Notice>
    );
  }
  return (
    <div data-denied={preview.newlyDeniedTotal}>
      <Notice
        tone={preview.newlyDeniedTotal === 0 ? 'good' : 'warn'}
        icon={preview.newlyDeniedTotal === 0 ? 'check' : 'warn'}
        role="status"
      >
        <b>{deniedWord(preview)}</b>
        {preview.newlyAllowedTotal > 0 && <p>{plural(preview.newlyAllowedTotal, 'thing')} would be allowed again.</p>}
        <ul>
          {preview.newlyDenied.map((each, at) => (
            <li key={at}>
              {each.objectId?.startsWith('ins_') === true ? (
                <Link to="/workloads/$id" params={{ id: each.objectId }}>
                  {each.name}
                </Link>
              ) : (
                each.name
              )}
              : {each.reasons.map((reason) => reason.message).join('; ')}
            </li>
          ))}
        </ul>
      </Notice>
    </div>
  );
}

function History({ overlays }: { overlays: readonly Overlay[] }) {
  return (
    <Card title="History" pad={false}>
      <ul style={{ listStyle: 'none', padding: '6px 16px 10px' }}>
        {overlays.map((each) => (
          <li key={each.id} style={{ padding: '5px 0' }}>
            <details className="fold">
              <summary>
                <span className="strong">Revision {each.revision}</span>{' '}
                <span className="small faint">
                  <Ago at={each.createdAt} /> · {each.reason}
                </span>
              </summary>
              <Json value={each.document} label={`Revision ${each.revision}`} />
            </details>
          </li>
        ))}
      </ul>
    </Card>
  );
}
