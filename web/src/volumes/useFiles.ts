// A folder of a volume as it is read page by page, and the uploads of a page.
import { useCallback, useEffect, useRef, useState } from 'react';
import type { Problem } from '../api/errors';
import { addressOf, listFolder, segmentOf, upload } from './files';
import type { FileEntry } from './files';

/** A folder. */
export interface Folder {
  readonly entries: readonly FileEntry[] | undefined;
  readonly problem: Problem | undefined;
  /** Reads the next page; undefined at the end. */
  readonly more: (() => void) | undefined;
  readonly refresh: () => void;
}

interface Pages {
  readonly of: string;
  readonly entries: readonly FileEntry[];
  readonly next: string;
}

/** Reads a folder from its beginning, and again when it is refreshed. */
export function useFolder(volumeId: string, segments: readonly string[]): Folder {
  const of = addressOf(volumeId, segments, true);
  const [pages, setPages] = useState<Pages>();
  const [problem, setProblem] = useState<{ of: string; problem: Problem }>();
  const [wanted, setWanted] = useState({ after: '', turn: 0 });
  useEffect(() => {
    const ended = new AbortController();
    void listFolder(volumeId, segments, wanted.after, ended.signal).then((answer) => {
      if (ended.signal.aborted) return;
      if (answer.problem !== undefined) {
        setProblem({ of, problem: answer.problem });
        return;
      }
      setProblem(undefined);
      const { entries, next } = answer.data;
      setPages((before) => ({
        of,
        entries: wanted.after !== '' && before?.of === of ? [...before.entries, ...entries] : entries,
        next,
      }));
    });
    return () => ended.abort();
    // The address stands for the segments.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [of, volumeId, wanted]);
  const refresh = useCallback(() => setWanted((before) => ({ after: '', turn: before.turn + 1 })), []);
  const [seen, setSeen] = useState(of);
  if (seen !== of) {
    setSeen(of); // another folder is read from its beginning
    setWanted((before) => ({ after: '', turn: before.turn + 1 }));
  }
  const here = pages?.of === of ? pages : undefined;
  const next = here?.next ?? '';
  return {
    entries: here?.entries,
    problem: problem?.of === of ? problem.problem : undefined,
    more: next === '' ? undefined : () => setWanted((before) => ({ after: next, turn: before.turn + 1 })),
    refresh,
  };
}

/** An upload of this page. */
export interface Running {
  readonly id: number;
  readonly name: string;
  readonly state: 'digest' | 'send' | 'uploaded' | 'failed';
  readonly done: number;
  readonly problem: Problem | undefined;
}

/** The uploads of a page. */
export interface Uploads {
  readonly list: readonly Running[];
  readonly add: (segments: readonly string[], files: readonly File[]) => void;
  /** Begins a failed one again; it goes on with what arrived. */
  readonly retry: (id: number) => void;
  /** Stops one, and takes it from the list. */
  readonly end: (id: number) => void;
}

interface Job {
  readonly address: string;
  readonly file: File;
  readonly stop: AbortController;
}

/** Reports whether an upload was stopped. */
function stopped(job: Job): boolean {
  return job.stop.signal.aborted;
}

/** Uploads files one after another; running uploads are stopped when the page is left. */
export function useUploads(volumeId: string, onDone: () => void): Uploads {
  const [list, setList] = useState<readonly Running[]>([]);
  const jobs = useRef(new Map<number, Job>());
  const last = useRef(0);
  const queue = useRef(Promise.resolve());
  useEffect(() => {
    const all = jobs.current;
    return () => all.forEach((job) => job.stop.abort());
  }, []);
  const set = (id: number, change: Partial<Running>) =>
    setList((before) => before.map((one) => (one.id === id ? { ...one, ...change } : one)));
  const run = (id: number, job: Job) => {
    jobs.current.set(id, job);
    queue.current = queue.current.then(async () => {
      if (stopped(job)) return;
      const answer = await upload({
        ...job,
        signal: job.stop.signal,
        onProgress: (state, done) => set(id, { state, done }),
      });
      if (stopped(job)) return;
      set(
        id,
        answer.problem === undefined ? { state: 'uploaded', done: 1 } : { state: 'failed', problem: answer.problem },
      );
      if (answer.problem === undefined) onDone();
    });
  };
  return {
    list,
    add: (segments, files) => {
      for (const file of files) {
        const id = ++last.current;
        setList((before) => [...before, { id, name: file.name, state: 'digest', done: 0, problem: undefined }]);
        const address = addressOf(volumeId, [...segments, segmentOf(file.name)], false);
        run(id, { address, file, stop: new AbortController() });
      }
    },
    retry: (id) => {
      const job = jobs.current.get(id);
      if (job === undefined) return;
      set(id, { state: 'digest', done: 0, problem: undefined });
      run(id, { ...job, stop: new AbortController() });
    },
    end: (id) => {
      jobs.current.get(id)?.stop.abort();
      jobs.current.delete(id);
      setList((before) => before.filter((one) => one.id !== id));
    },
  };
}
