// The card of a list in each of its states: loading, failed, empty, and with more rows to read.
import { Button } from '@mantine/core';
import type { ReactNode } from 'react';
import type { Rows } from '../api/pages';
import { ProblemNotice, ProblemPage } from './Problem';
import { DataTable, Loading } from './parts';
import type { Column } from './parts';

/** A paged table. `empty` is shown when there are no rows. */
export function RowsCard<Row extends { readonly id: string }>({
  list,
  columns,
  label,
  empty,
  children,
}: {
  list: Rows<Row>;
  columns: readonly Column<Row>[];
  label: string;
  empty: ReactNode;
  children?: ReactNode;
}) {
  if (list.problem !== undefined && list.rows.length === 0 && !list.loading)
    return <ProblemPage problem={list.problem} onRetry={list.refresh} />;
  return (
    <div className="card">
      {children}
      {list.problem !== undefined && (
        <div className="card-body">
          <ProblemNotice problem={list.problem} onRetry={list.refresh} />
        </div>
      )}
      {list.loading && <Loading lines={6} />}
      {!list.loading && list.rows.length === 0 && list.problem === undefined && empty}
      {list.rows.length > 0 && <DataTable label={label} columns={columns} rows={list.rows} keyOf={(row) => row.id} />}
      <More list={list} />
    </div>
  );
}

/** The button that reads the next page. */
export function More<Row>({ list }: { list: Rows<Row> }) {
  if (list.more === undefined) return null;
  return (
    <div className="form-foot" style={{ justifyContent: 'center' }}>
      <Button variant="default" loading={list.loadingMore} onClick={list.more}>
        Show more
      </Button>
    </div>
  );
}
