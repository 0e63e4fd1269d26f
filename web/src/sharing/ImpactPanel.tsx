// The projects that a change of a control plane would affect.
import { useRead } from '../api/hooks';
import { ImpactTable } from '../changes/ImpactTable';
import { ImpactOfDocument } from '../generated/graphql';
import { ProblemNotice } from '../ui/Problem';
import { Loading } from '../ui/parts';

/** The blast radius of an instance, read now. */
export function ImpactPanel({ instanceId }: { instanceId: string }) {
  const { data, problem } = useRead(ImpactOfDocument, { instanceId });
  if (data === undefined) return problem === undefined ? <Loading lines={3} /> : <ProblemNotice problem={problem} />;
  return <ImpactTable impact={data.impactOf} />;
}
