// The effective policy of this project, and the overlays that it is made of.
import { SegmentedControl } from '@mantine/core';
import { useState } from 'react';
import { useRead } from '../api/hooks';
import { useProjectId, useSession } from '../api/session';
import { EffectivePolicyDocument } from '../generated/graphql';
import type { EffectivePolicyQuery, PolicyScope } from '../generated/graphql';
import { words } from '../lib/format';
import { headOf } from '../lib/places';
import { ProblemPage } from '../ui/Problem';
import { Status } from '../ui/Status';
import { Card, DataTable, Empty, Loading, PageHead } from '../ui/parts';
import { OverlayCard } from './OverlayCard';

type Rule = EffectivePolicyQuery['effectivePolicy']['rules'][number];

/** The page: the effective rules with their origins, then the overlay of the level that is chosen. */
export function PolicyPage() {
  const projectId = useProjectId();
  const { project } = useSession();
  const [scope, setScope] = useState<PolicyScope>('PROJECT');
  const { data, problem, refresh } = useRead(EffectivePolicyDocument, { projectId });
  const tenantId = scope === 'TENANT' ? (project?.tenantId ?? null) : null;
  return (
    <div className="page">
      <PageHead {...headOf('/policy')} />
      <div className="stack">
        <Card title="Effective rules of this project" pad={false}>
          {data === undefined &&
            (problem === undefined ? <Loading /> : <ProblemPage problem={problem} onRetry={refresh} />)}
          {data !== undefined && data.effectivePolicy.rules.length === 0 && (
            <Empty icon="audit" title="No rules">
              Everything is allowed.
            </Empty>
          )}
          {data !== undefined && data.effectivePolicy.rules.length > 0 && (
            <DataTable
              label="Rules"
              columns={columns}
              rows={data.effectivePolicy.rules.map((rule, at) => ({ ...rule, at }))}
              keyOf={(row) => String(row.at)}
            />
          )}
        </Card>
        <SegmentedControl
          aria-label="Level"
          value={scope}
          onChange={(next) => setScope(next)}
          data={[
            { value: 'PROJECT', label: 'This project’s overlay' },
            { value: 'TENANT', label: 'The tenant’s' },
            { value: 'PLATFORM', label: 'The platform’s' },
          ]}
        />
        <OverlayCard
          key={`${scope} ${projectId}`}
          scope={scope}
          tenantId={tenantId}
          projectId={scope === 'PROJECT' ? projectId : null}
          onWritten={refresh}
        />
      </div>
    </div>
  );
}

const columns = [
  {
    head: 'About',
    cell: (row: Rule) => <span className="strong">{words(row.dimension.replaceAll(/([A-Z])/g, ' $1'))}</span>,
  },
  { head: 'Rule', cell: (row: Rule) => <RuleWord row={row} /> },
  {
    head: 'From',
    cell: (row: Rule) => (
      <span>
        {words(row.origin)}
        {row.overlayId === null && <span className="sub">by default</span>}
      </span>
    ),
  },
  { head: '', cell: (row: Rule) => (row.final ? <span className="tag">final</span> : null) },
];

function RuleWord({ row }: { row: Rule }) {
  if (row.effect === 'CEILING')
    return (
      <span>
        <Status state="DRAINING" bare label="at most" /> <span className="num">{row.limit}</span>
        <span className="sub said">{row.message}</span>
      </span>
    );
  const state = row.effect === 'ALLOW' ? 'ACTIVE' : 'FAILED';
  return (
    <span className="wrap-any">
      <Status state={state} bare label={row.effect === 'ALLOW' ? 'only' : 'never'} />{' '}
      {row.values.length === 0 ? (
        <span className="faint">none</span>
      ) : (
        row.values.map((value) => (
          <code key={value} style={{ marginRight: 6 }}>
            {value}
          </code>
        ))
      )}
      <span className="sub said">{row.message}</span>
    </span>
  );
}
