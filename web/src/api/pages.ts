// Lists that are read page by page: the first page is live, the following pages are kept as read.
import type { TypedDocumentNode } from '@graphql-typed-document-node/core';
import { useState } from 'react';
import { client } from './client';
import type { Problem } from './errors';
import { problemOf } from './errors';
import { useRead } from './hooks';

/** A connection, the shape of every list in the schema. */
export interface Connection<Row> {
  readonly edges: readonly { readonly node: Row }[];
  readonly pageInfo: { readonly hasNextPage: boolean; readonly endCursor: string | null };
}

/** A list with what is needed to read more of it. */
export interface Rows<Row> {
  readonly rows: readonly Row[];
  readonly problem: Problem | undefined;
  /** Nothing has been read yet. */
  readonly loading: boolean;
  readonly more: (() => void) | undefined;
  readonly loadingMore: boolean;
  readonly refresh: () => void;
}

interface Later<Row> {
  key: string;
  rows: readonly Row[];
  pageInfo: Connection<Row>['pageInfo'];
}

/** Reads a list; `pick` finds the connection. A row that is read twice because the list moved is shown once. */
export function useRows<Data, Variables extends Record<string, unknown>, Row extends { readonly id: string }>(
  document: TypedDocumentNode<Data, Variables>,
  variables: Variables,
  pick: (data: Data) => Connection<Row>,
): Rows<Row> {
  const key = JSON.stringify(variables);
  const { data, problem, loading, refresh } = useRead(document, variables);
  const [later, setLater] = useState<Later<Row>>();
  const [busy, setBusy] = useState(false);
  const [laterProblem, setLaterProblem] = useState<Problem>();

  const first = data === undefined ? undefined : pick(data);
  const kept = later?.key === key ? later : undefined;
  const pageInfo = kept?.pageInfo ?? first?.pageInfo;
  const after = pageInfo?.hasNextPage === true ? pageInfo.endCursor : null;

  const more = async () => {
    setBusy(true);
    const answer = await client.query(document, { ...variables, after }, { requestPolicy: 'network-only' }).toPromise();
    setBusy(false);
    setLaterProblem(answer.error === undefined ? undefined : problemOf(answer.error));
    if (answer.data === undefined || answer.data === null) return;
    const page = pick(answer.data);
    const before = kept?.rows ?? [];
    setLater({ key, rows: [...before, ...page.edges.map((edge) => edge.node)], pageInfo: page.pageInfo });
  };

  const rows = unique([...(first?.edges.map((edge) => edge.node) ?? []), ...(kept?.rows ?? [])]);
  return {
    rows,
    problem: problem ?? laterProblem,
    loading: first === undefined && loading,
    more: after === null ? undefined : () => void more(),
    loadingMore: busy,
    refresh,
  };
}

function unique<Row extends { readonly id: string }>(rows: readonly Row[]): Row[] {
  const seen = new Set<string>();
  return rows.filter((row) => !seen.has(row.id) && seen.add(row.id));
}
