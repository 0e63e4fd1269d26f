// Hooks over the client: queries that survive a restart of the server, and submissions that can be repeated.
import type { TypedDocumentNode } from '@graphql-typed-document-node/core';
import type { CombinedError } from '@urql/core';
import { useCallback, useEffect, useRef, useState, useSyncExternalStore } from 'react';
import { useQuery } from 'urql';
import { attemptFor } from '../lib/idempotency';
import type { Attempt } from '../lib/idempotency';
import { client, live, toLogin } from './client';
import type { Problem } from './errors';
import { isUnreachable, needsLogin, plain, problemOf } from './errors';
import type { LiveStatus } from './live';

/** Returns the status of the live connection. */
export function useLiveStatus(): LiveStatus {
  return useSyncExternalStore(live.subscribe, live.status);
}

/** The result of a query. `data` stays while it is read again, and also when reading again fails. */
export interface Read<Data> {
  readonly data: Data | undefined;
  readonly problem: Problem | undefined;
  readonly loading: boolean;
  readonly refresh: () => void;
}

/** Milliseconds before a query is tried again while the platform cannot be reached. */
const retryEvery = 3_000;

/** Reads a query, reads it again after every reconnect, and keeps trying while the platform cannot be reached. */
export function useRead<Data, Variables extends Record<string, unknown>>(
  document: TypedDocumentNode<Data, Variables>,
  variables: Variables,
  pause = false,
): Read<Data> {
  const [result, execute] = useQuery<Data, Variables>({ query: document, variables, pause });
  const { epoch } = useLiveStatus();
  const refresh = useCallback(() => execute({ requestPolicy: 'network-only' }), [execute]);
  const seenEpoch = useRef(epoch);
  useEffect(() => {
    if (seenEpoch.current === epoch) return;
    if (seenEpoch.current > 0 && !pause) refresh();
    seenEpoch.current = epoch;
  }, [epoch, pause, refresh]);

  const problem = result.error === undefined ? undefined : problemOf(result.error);
  const unreachable = problem !== undefined && isUnreachable(problem) && !result.fetching;
  useEffect(() => {
    if (!unreachable) return undefined;
    const timer = setTimeout(refresh, retryEvery);
    return () => clearTimeout(timer);
  }, [unreachable, refresh]);

  const lost = problem !== undefined && needsLogin(problem);
  useEffect(() => {
    if (lost) toLogin('none');
  }, [lost]);
  const last = useLast(result.data ?? undefined, JSON.stringify(variables));
  return { data: last, problem, loading: result.fetching || lost, refresh };
}

/** Returns the newest value that was not undefined, as long as the key is the same. */
function useLast<Value>(value: Value | undefined, key: string): Value | undefined {
  const [kept, setKept] = useState<{ key: string; value: Value | undefined }>({ key, value });
  if (value !== undefined && (kept.value !== value || kept.key !== key)) setKept({ key, value });
  return value ?? (kept.key === key ? kept.value : undefined);
}

/** The result of a request: its data, or the problem. */
export type Answer<Data> =
  { readonly data: Data; readonly problem?: undefined } | { readonly problem: Problem; readonly data?: undefined };

/** Reads once and bypasses every cache: a plan must be based on the current state. */
export async function ask<Data, Variables extends Record<string, unknown>>(
  document: TypedDocumentNode<Data, Variables>,
  variables: Variables,
): Promise<Answer<Data>> {
  return answerOf(await client.query(document, variables, { requestPolicy: 'network-only' }).toPromise());
}

/** Sends a mutation that is harmless to repeat. */
export async function tell<Data, Variables extends Record<string, unknown>>(
  document: TypedDocumentNode<Data, Variables>,
  variables: Variables,
): Promise<Answer<Data>> {
  return answerOf(await client.mutation(document, variables).toPromise());
}

function answerOf<Data>(answer: {
  readonly data?: Data | undefined;
  readonly error?: CombinedError | undefined;
}): Answer<Data> {
  if (answer.error === undefined && answer.data !== undefined) return { data: answer.data };
  const problem =
    answer.error === undefined ? plain('INTERNAL', 'The platform returned no answer.', '') : problemOf(answer.error);
  if (needsLogin(problem)) toLogin('expired');
  return { problem };
}

/**
 * Returns a function that sends a mutation whose input takes an idempotency key. Until the mutation succeeds, the same
 * input is sent with the same key.
 */
export function useSender<Data, Input extends { idempotencyKey: string }>(
  document: TypedDocumentNode<Data, { input: Input }>,
): (input: Omit<Input, 'idempotencyKey'>) => Promise<Answer<Data>> {
  const attempt = useRef<Attempt>(undefined);
  return useCallback(
    async (input: Omit<Input, 'idempotencyKey'>) => {
      attempt.current = attemptFor(attempt.current, input);
      const variables = { input: { ...input, idempotencyKey: attempt.current.key } as Input };
      const answer = answerOf(await client.mutation(document, variables).toPromise());
      if (answer.problem === undefined) attempt.current = undefined;
      return answer;
    },
    [document],
  );
}

/** A submission; a retry of the same input uses the same idempotency key. */
export interface Submission<Input, Data> {
  readonly submit: (input: Input) => Promise<Data | undefined>;
  readonly problem: Problem | undefined;
  readonly busy: boolean;
  readonly reset: () => void;
}

/** A mutation whose input takes an idempotency key. */
export function useSubmission<Data, Input extends { idempotencyKey: string }>(
  document: TypedDocumentNode<Data, { input: Input }>,
): Submission<Omit<Input, 'idempotencyKey'>, Data> {
  const [problem, setProblem] = useState<Problem>();
  const [busy, setBusy] = useState(false);
  const send = useSender(document);
  const submit = useCallback(
    async (input: Omit<Input, 'idempotencyKey'>) => {
      setBusy(true);
      const answer = await send(input);
      setBusy(false);
      setProblem(answer.problem);
      return answer.data;
    },
    [send],
  );
  const reset = useCallback(() => setProblem(undefined), []);
  return { submit, problem, busy, reset };
}

/** Returns the value, updated only after it has not changed for a while. */
export function useSettled<Value>(value: Value, milliseconds = 250): Value {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), milliseconds);
    return () => clearTimeout(timer);
  }, [value, milliseconds]);
  return settled;
}

/** Returns a function that runs at most once per interval however often it is called, and always after the last call. */
export function useThrottled(run: () => void, milliseconds = 500): () => void {
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const latest = useRef(run);
  useEffect(() => {
    latest.current = run;
  });
  useEffect(() => () => clearTimeout(timer.current), []);
  return useCallback(() => {
    if (timer.current !== undefined) return;
    timer.current = setTimeout(() => {
      timer.current = undefined;
      latest.current();
    }, milliseconds);
  }, [milliseconds]);
}
