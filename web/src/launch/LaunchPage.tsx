// Launching an app: its capacity, size, configuration and deadline.
import { Select } from '@mantine/core';
import { Link, useNavigate } from '@tanstack/react-router';
import { useRead } from '../api/hooks';
import { useProjectId } from '../api/session';
import { LaunchOptionsDocument } from '../generated/graphql';
import { Icon } from '../ui/Icons';
import { ProblemPage } from '../ui/Problem';
import { Glyph, Loading, PageHead } from '../ui/parts';
import { LaunchForm } from './LaunchForm';
import { versionChoices } from './launch';

/** The launch page of an app; without a version, of its active version. */
export function LaunchPage({ slug, version }: { slug: string; version: string | undefined }) {
  const projectId = useProjectId();
  const read = useRead(LaunchOptionsDocument, { projectId, appSlug: slug, version: version ?? null });
  const options = read.data?.launchOptions;
  const navigate = useNavigate();
  return (
    <div className="page" style={{ maxWidth: 980 }}>
      <PageHead
        title={`Launch ${options?.manifest.displayName ?? slug}`}
        mark={<Glyph slug={slug} size={48} />}
        lede={
          options === undefined ? undefined : (
            <>
              Version {options.manifest.version}. {options.manifest.summary}
            </>
          )
        }
        actions={
          options !== undefined &&
          options.versions.length > 1 && (
            <Select
              label="Version"
              data={versionChoices(options.versions)}
              value={options.manifest.version}
              allowDeselect={false}
              w={260}
              onChange={(next) => {
                if (next !== null) void navigate({ to: '/launch/$slug', params: { slug }, search: { version: next } });
              }}
            />
          )
        }
        crumbs={
          <>
            <Link to="/catalog">Catalog</Link>
            <Icon name="right" size={12} />
            <Link to="/catalog/$slug" params={{ slug }}>
              {slug}
            </Link>
            <Icon name="right" size={12} />
            <span>Launch</span>
          </>
        }
      />
      {options !== undefined && (
        <LaunchForm
          key={`${projectId} ${options.manifest.id}`}
          options={options}
          projectId={projectId}
          refresh={read.refresh}
        />
      )}
      {options === undefined &&
        (read.problem !== undefined && !read.loading ? (
          <ProblemPage problem={read.problem} onRetry={read.refresh} />
        ) : (
          <div className="card">
            <Loading lines={9} />
          </div>
        ))}
    </div>
  );
}
