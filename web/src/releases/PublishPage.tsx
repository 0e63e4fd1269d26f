// Publishing a version: the document, its lint, and the button that stores it as a draft.
import { Button, FileButton, JsonInput } from '@mantine/core';
import { Link, useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import type { Problem } from '../api/errors';
import { ask, useSubmission } from '../api/hooks';
import { LintDocumentDocument, PublishManifestDocument } from '../generated/graphql';
import type { LintDocumentQuery } from '../generated/graphql';
import { parseDocument } from '../lib/document';
import { Icon } from '../ui/Icons';
import { Notice, ProblemNotice } from '../ui/Problem';
import { Card, PageHead } from '../ui/parts';

/** The largest document, in bytes. */
const maxDocument = 256 * 1024;

/** The page: a document is written or loaded, linted, and published. */
export function PublishPage() {
  const way = usePublishing();
  return (
    <div className="page">
      <PageHead
        title="Publish a version"
        lede="A manifest says what an app consists of, what it needs and how it is configured. Once published it never changes."
        crumbs={
          <>
            <Link to="/releases">Releases</Link>
            <Icon name="right" size={12} />
            <span>Publish</span>
          </>
        }
        actions={
          <FileButton accept="application/json,.json" onChange={(file) => void way.load(file)}>
            {(props) => (
              <Button variant="default" {...props}>
                Load a file
              </Button>
            )}
          </FileButton>
        }
      />
      <Card title="Manifest">
        <div className="stack">
          {way.tooLarge && (
            <Notice tone="bad" icon="warn" role="alert">
              A manifest has at most 256 KiB.
            </Notice>
          )}
          <JsonInput
            label="Document"
            description="JSON, by the schema that appctl manifest schema prints"
            autosize
            minRows={16}
            maxRows={30}
            formatOnBlur
            spellCheck={false}
            value={way.text}
            onChange={way.change}
            error={way.text === '' ? undefined : way.wrong}
            styles={{ input: { fontFamily: 'var(--mantine-font-family-monospace)', fontSize: 12.5 } }}
          />
          {way.lint !== undefined && <LintNotice lint={way.lint} />}
          {way.problem !== undefined && <ProblemNotice problem={way.problem} />}
          <div className="row" style={{ justifyContent: 'flex-end' }}>
            <Button
              variant="default"
              loading={way.linting}
              disabled={way.wrong !== undefined}
              onClick={() => void way.check()}
            >
              Lint
            </Button>
            <Button loading={way.busy} disabled={way.lint?.ok !== true} onClick={() => void way.publish()}>
              Publish as a draft
            </Button>
          </div>
        </div>
      </Card>
    </div>
  );
}

function usePublishing() {
  const navigate = useNavigate();
  const [text, setText] = useState('');
  const [lint, setLint] = useState<LintDocumentQuery['lintManifest']>();
  const [linting, setLinting] = useState(false);
  const [lintProblem, setLintProblem] = useState<Problem>();
  const [tooLarge, setTooLarge] = useState(false);
  const { submit, problem, busy } = useSubmission(PublishManifestDocument);
  const { document, wrong } = parseDocument(text);
  const change = (next: string) => {
    setText(next);
    setLint(undefined);
  };
  const load = async (file: File | null) => {
    if (file === null) return;
    setTooLarge(file.size > maxDocument);
    if (file.size <= maxDocument) change(await file.text());
  };
  const check = async () => {
    setLinting(true);
    const answer = await ask(LintDocumentDocument, { document });
    setLinting(false);
    setLintProblem(answer.problem);
    setLint(answer.data?.lintManifest);
  };
  const publish = async () => {
    const answer = await submit({ document });
    if (answer !== undefined) void navigate({ to: '/releases/$id', params: { id: answer.publishManifest.id } });
  };
  return { text, change, load, tooLarge, wrong, lint, linting, check, publish, busy, problem: lintProblem ?? problem };
}

function LintNotice({ lint }: { lint: LintDocumentQuery['lintManifest'] }) {
  if (lint.ok)
    return (
      <Notice tone="good" icon="check" role="status">
        <b>Lint passed.</b> It fits the schema and the catalog.
      </Notice>
    );
  return (
    <Notice tone="bad" icon="warn" role="alert">
      <b>It would be refused.</b>
      <ul>
        {lint.reasons.map((reason, at) => (
          <li key={at}>
            <code>{reason.path}</code> <span className="said">{reason.message}</span>{' '}
            <span className="faint">{reason.code}</span>
          </li>
        ))}
      </ul>
    </Notice>
  );
}
