// What the platform's tenants cost this month, and the costs that the platform bears itself, for operators.
import { useRead } from '../api/hooks';
import { PlatformCostsDocument } from '../generated/graphql';
import { headOf } from '../lib/places';
import { ProblemPage } from '../ui/Problem';
import { Loading, PageHead } from '../ui/parts';
import { ShareTable } from './CostsPage';

/** The costs of all tenants. */
export function PlatformCostsPage() {
  const read = useRead(PlatformCostsDocument, {});
  const data = read.data;
  return (
    <div className="page">
      <PageHead {...headOf('/platform-costs')} />
      {data !== undefined && (
        <div className="stack">
          <ShareTable title="By tenant" none="" shares={data.byTenant} />
          <ShareTable title="By app" none="what no instance used" shares={data.byApp} />
          <ShareTable title="By what is metered" none="" shares={data.byMeter} />
          <ShareTable title="Borne by the platform" none="" shares={data.borne} reasons />
        </div>
      )}
      {data === undefined &&
        (read.problem !== undefined && !read.loading ? (
          <ProblemPage problem={read.problem} onRetry={read.refresh} />
        ) : (
          <div className="card">
            <Loading lines={8} />
          </div>
        ))}
    </div>
  );
}
