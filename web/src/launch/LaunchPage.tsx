// Launching an app: where, how many, how configured, until when.
import { Link } from '@tanstack/react-router';
import { useRead } from '../api/hooks';
import { useProjectId } from '../api/session';
import { LaunchOptionsDocument } from '../generated/graphql';
import { Icon } from '../ui/Icons';
import { ProblemPage } from '../ui/Problem';
import { Glyph, Loading, PageHead } from '../ui/parts';
import { LaunchForm } from './LaunchForm';

/** The launch page of an app; without a version, of its active one. */
export function LaunchPage({ slug, version }: { slug: string; version: string | undefined }) {
  const projectId = useProjectId();
  const read = useRead(LaunchOptionsDocument, { projectId, appSlug: slug, version: version ?? null });
  const options = read.data?.launchOptions;
  return (
    <div className="page" style={{ maxWidth: 980 }}>
      <PageHead
        title={`Launch ${options?.manifest.displayName ?? slug}`} mark={<Glyph slug={slug} size={48} />}
        lede={options === undefined ? undefined : <>Version {options.manifest.version}. {options.manifest.summary}</>}
        crumbs={<><Link to="/catalog">Catalog</Link><Icon name="right" size={12} /><Link to="/catalog/$slug" params={{ slug }}>{slug}</Link><Icon name="right" size={12} /><span>Launch</span></>}
      />
      {options !== undefined && <LaunchForm key={`${projectId} ${options.manifest.id}`} options={options} projectId={projectId} refresh={read.refresh} />}
      {options === undefined && (read.problem !== undefined && !read.loading ? <ProblemPage problem={read.problem} onRetry={read.refresh} /> : <div className="card"><Loading lines={9} /></div>)}
    </div>
  );
}
