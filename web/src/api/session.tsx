// The session: the viewer, the chosen project, the permission keys there, and the events of that project.
import { createContext, useCallback, useContext, useEffect, useMemo, useRef, useState } from 'react';
import type { ReactNode } from 'react';
import { PermissionsDocument, ProjectActivityDocument, SessionDocument } from '../generated/graphql';
import type { ProjectActivitySubscription, SessionQuery } from '../generated/graphql';
import { recallProject, rememberProject } from '../lib/chosen';
import { keepFresh, live } from './client';
import { useRead } from './hooks';
import type { Read } from './hooks';

/** A project the viewer can see. */
export type Project = SessionQuery['viewer']['projects']['edges'][number]['node'];

/** An event of the project's activity. */
export type Activity = ProjectActivitySubscription['projectActivity'];

/** The session as pages use it. */
export interface Session {
  readonly viewer: SessionQuery['viewer'];
  readonly projects: readonly Project[];
  readonly project: Project | undefined;
  readonly choose: (projectId: string) => void;
  /** Reports whether the viewer has the key in the project. The server decides; this only hides what it would refuse. */
  readonly can: (key: string) => boolean;
  /** Whether the viewer has a role on the platform itself. */
  readonly staff: boolean;
  /** Calls the listener for each event of the project; returns a function that stops it. */
  readonly onActivity: (listener: (event: Activity) => void) => () => void;
}

const SessionContext = createContext<Session | undefined>(undefined);

/** Returns the session; only below SessionGate. */
export function useSession(): Session {
  const session = useContext(SessionContext);
  if (session === undefined) throw new Error('useSession outside of SessionGate');
  return session;
}

/** Returns the chosen project's id, or the empty string when there is none; only below SessionGate. */
export function useProjectId(): string {
  return useSession().project?.id ?? '';
}

/** Calls the listener for each event of the project while the component is mounted. */
export function useActivity(listener: (event: Activity) => void): void {
  const { onActivity } = useSession();
  const latest = useRef(listener);
  useEffect(() => {
    latest.current = listener;
  });
  useEffect(() => onActivity((event) => latest.current(event)), [onActivity]);
}

/** Reads the session and shows its children once it is known; until then `fallback` decides what is shown. */
export function SessionGate({
  children,
  fallback,
}: {
  children: ReactNode;
  fallback: (read: Read<SessionQuery>) => ReactNode;
}) {
  const read = useRead(SessionDocument, {});
  if (read.data === undefined) return fallback(read);
  return <Provider viewer={read.data.viewer}>{children}</Provider>;
}

function Provider({ viewer, children }: { viewer: SessionQuery['viewer']; children: ReactNode }) {
  const projects = useMemo(() => viewer.projects.edges.map((edge) => edge.node), [viewer]);
  const [chosen, setChosen] = useState(recallProject);
  const project = projects.find((each) => each.id === chosen) ?? projects[0];
  const choose = useCallback((projectId: string) => {
    setChosen(projectId);
    rememberProject(projectId);
  }, []);
  const shown = project?.id;
  useEffect(() => {
    if (shown !== undefined) rememberProject(shown);
  }, [shown]); // "Why can't I?" is about this project
  const { data } = useRead(PermissionsDocument, { projectId: project?.id ?? '' }, project === undefined);
  const keys = useMemo(() => new Set(data?.viewer.permissions ?? []), [data]);
  useEffect(keepFresh, []);
  const onActivity = useProjectActivity(project?.id);
  const session = useMemo<Session>(
    () => ({
      viewer,
      projects,
      project,
      choose,
      onActivity,
      can: (key) => keys.has(key),
      staff: viewer.bindings.some((each) => each.tenantId === null),
    }),
    [viewer, projects, project, choose, onActivity, keys],
  );
  return <SessionContext value={session}>{children}</SessionContext>;
}

/** Follows the project's activity for as long as the console is open, which also keeps the connection up. */
function useProjectActivity(projectId: string | undefined): Session['onActivity'] {
  const listeners = useRef(new Set<(event: Activity) => void>());
  useEffect(() => {
    if (projectId === undefined) return undefined;
    return live.follow(
      ProjectActivityDocument,
      { projectId },
      {
        cursorOf: (data) => data.projectActivity.cursor,
        onData: (data) => {
          for (const listener of listeners.current) listener(data.projectActivity);
        },
        onEnd: () => undefined, // without the permission to watch, pages still read on load and on demand
      },
    );
  }, [projectId]);
  return useCallback((listener) => {
    listeners.current.add(listener);
    return () => {
      listeners.current.delete(listener);
    };
  }, []);
}
