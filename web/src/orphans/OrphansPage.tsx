// What operations of the project left behind and could not clean up yet.
import { SegmentedControl } from '@mantine/core';
import { useMemo, useState } from 'react';
import { useWhile } from '../api/useWhile';
import { useThrottled } from '../api/hooks';
import { useRows } from '../api/pages';
import { useActivity, useProjectId } from '../api/session';
import { OrphansDocument } from '../generated/graphql';
import type { OrphanBitsFragment, OrphansQuery } from '../generated/graphql';
import { headOf } from '../lib/places';
import { RowsCard } from '../ui/Rows';
import { Empty, PageHead } from '../ui/parts';
import { orphanColumns } from './OrphanTable';

const pick = (data: OrphansQuery) => data.orphans;

/** The list; resolved orphans are shown only on demand. */
export function OrphansPage() {
  const projectId = useProjectId();
  const [resolved, setResolved] = useState(false);
  const variables = useMemo(() => ({ projectId, resolved }), [projectId, resolved]);
  const list = useRows(OrphansDocument, variables, pick);
  const refresh = useThrottled(list.refresh);
  useActivity(refresh);
  useWhile(
    list.rows.some((row) => row.resolvedAt === null),
    refresh,
  );
  const columns = useMemo(() => orphanColumns(list.refresh, true), [list.refresh]);
  return (
    <div className="page">
      <PageHead {...headOf('/orphans')} />
      <RowsCard<OrphanBitsFragment>
        list={list}
        label="Orphans"
        columns={columns}
        empty={
          <Empty icon="check" title="Nothing is left behind">
            What an operation cannot clean up is listed here, with its age and its cost.
          </Empty>
        }
      >
        <div className="card-head">
          <SegmentedControl
            size="xs"
            aria-label="Which orphans"
            value={resolved ? 'all' : 'open'}
            onChange={(next) => setResolved(next === 'all')}
            data={[
              { value: 'open', label: 'Open' },
              { value: 'all', label: 'Including resolved' },
            ]}
          />
        </div>
      </RowsCard>
    </div>
  );
}
