// What can be done with a share, on either side of it.

/** A change of a share. */
export type Move = 'accept' | 'decline' | 'withdraw' | 'detach';

/** The part of a share that decides. */
export interface Standing {
  readonly status: string;
  readonly ownerProjectId: string;
  readonly projectId: string;
}

/** Returns what the viewer may do with the share from this project. */
export function movesOf(share: Standing, projectId: string, can: (key: string) => boolean): Move[] {
  const moves: Move[] = [];
  const ours = share.projectId === projectId;
  if (share.status === 'OFFERED' && ours && can('control_plane.attach')) moves.push('accept', 'decline');
  if (share.status === 'ATTACHED' && ours && can('control_plane.detach')) moves.push('detach');
  if (
    (share.status === 'OFFERED' || share.status === 'ATTACHED') &&
    share.ownerProjectId === projectId &&
    can('control_plane.offer')
  )
    moves.push('withdraw');
  return moves;
}
