// What keeps members apart on a node, and its GPUs by identity.
import type { NodesQuery } from '../generated/graphql';
import { plural, words } from '../lib/format';
import { Status } from '../ui/Status';

type Row = NodesQuery['nodes']['edges'][number]['node'];

/** The isolation classes of a node with its runtime and the guarantees that the node does not give. */
export function Walls({ row }: { row: Row }) {
  const walls = row.walls;
  if (walls === null)
    return (
      <span>
        {words(row.isolation)}
        <span className="sub">its agent reports no walls</span>
      </span>
    );
  const runtime = [
    walls.runtime,
    walls.runtimeVersion,
    walls.cgroupVersion === 0 ? 'no control groups' : `cgroup v${walls.cgroupVersion}`,
  ]
    .filter(Boolean)
    .join(' ');
  return (
    <span>
      {walls.classes.length === 0 ? (
        <Status state="FAILED" bare label="Can start no member" />
      ) : (
        walls.classes.map(words).join(', ')
      )}
      <span className="sub">{[walls.profiles.map(words).join(' and '), runtime].filter(Boolean).join(' · ')}</span>
      {walls.gaps.length > 0 && (
        <details className="fold">
          <summary>{plural(walls.gaps.length, 'wall')} not effective</summary>
          <ul>
            {walls.gaps.map((gap) => (
              <li key={gap.wall}>
                <b>{words(gap.wall)}</b>: {gap.reason}
              </li>
            ))}
          </ul>
        </details>
      )}
    </span>
  );
}

/** The GPUs of a node: how many, and folded, each with its identity. */
export function Gpus({ row }: { row: Row }) {
  if (row.gpus === 0) return <span className="faint">none</span>;
  return (
    <span>
      {row.gpus} × {row.gpuModel}
      {row.gpusSimulated && <span className="sub">simulated</span>}
      {row.devices !== null && (
        <details className="fold">
          <summary>Identities</summary>
          <ul>
            {row.devices.map((device) => (
              <li key={device.uuid} className="mono">
                {device.uuid}
                <span className="sub">{[device.path, device.pciAddress].filter(Boolean).join(' · ')}</span>
              </li>
            ))}
          </ul>
        </details>
      )}
    </span>
  );
}
