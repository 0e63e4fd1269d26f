// What the next step of a version needs besides its evidence, and which terms are not met yet.
import { useRead } from '../api/hooks';
import { AppTermsDocument } from '../generated/graphql';
import type { AppTermsQuery, ReasonBitsFragment, Stage } from '../generated/graphql';
import { plural } from '../lib/format';
import { ProblemNotice } from '../ui/Problem';
import { Status } from '../ui/Status';
import { Card, Loading } from '../ui/parts';
import { isTerm } from './OverrideField';

type Terms = AppTermsQuery['app']['promotionTerms'];

/** The terms of the step that leads on from a stage, in words. */
function wanted(stage: Stage, kind: string, terms: Terms): readonly string[] {
  const both = [
    kind === 'controller' ? 'Both reports, signed by a registered runner' : '',
    terms.smokedArtifacts ? 'A signed smoke of each artifact, of its kind' : '',
  ];
  const active = [
    terms.minLaunches > 0 ? `${plural(terms.minLaunches, 'launch', 'launches')} by others than its publisher` : '',
    terms.minMinutes > 0 ? `${plural(terms.minMinutes, 'minute')} as the canary` : '',
    terms.requireOnboarding ? 'All conditions of onboarding, in a recorded check' : '',
    terms.secondApprover ? 'A person who took none of the steps before' : '',
  ];
  const of: Partial<Record<Stage, readonly string[]>> = {
    STAGED: both,
    CANARY: active,
    DEPRECATED: [terms.graceHours > 0 ? `${plural(terms.graceHours, 'hour')} as deprecated` : ''],
  };
  return (of[stage] ?? []).filter((each) => each !== '');
}

/** The card; nothing for stages whose next step has no terms. */
export function TermsCard({
  slug,
  stage,
  kind,
  lacks,
}: {
  slug: string;
  stage: Stage;
  kind: string;
  lacks: readonly ReasonBitsFragment[];
}) {
  const paused = !['STAGED', 'CANARY', 'DEPRECATED'].includes(stage);
  const { data, problem, refresh } = useRead(AppTermsDocument, { slug }, paused);
  if (paused) return null;
  if (data === undefined)
    return (
      <Card title="Terms of its next step">
        {problem === undefined ? <Loading /> : <ProblemNotice problem={problem} onRetry={refresh} />}
      </Card>
    );
  const terms = wanted(stage, kind, data.app.promotionTerms);
  const unmet = lacks.filter(isTerm).length;
  return (
    <Card
      title="Terms of its next step"
      label="Terms"
      aside={
        terms.length > 0 && (
          <Status state={unmet === 0 ? 'ACTIVE' : 'PENDING'} label={unmet === 0 ? 'Met' : `${unmet} not met`} />
        )
      }
    >
      {terms.length === 0 ? (
        <p className="small faint">This app’s terms require nothing more.</p>
      ) : (
        <ul className="stack-s small">
          {terms.map((each) => (
            <li key={each}>{each}</li>
          ))}
        </ul>
      )}
    </Card>
  );
}
