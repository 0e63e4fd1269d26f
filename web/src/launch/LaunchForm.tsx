// The launch form: its fields, its own errors before it is sent, and the platform's errors after.
import { Button, NumberInput, Select, TextInput } from '@mantine/core';
import { useNavigate } from '@tanstack/react-router';
import { useMemo, useState } from 'react';
import type { ReactNode, SyntheticEvent } from 'react';
import { placeReasons } from '../api/errors';
import { useRead, useSettled, useSubmission } from '../api/hooks';
import { useSession } from '../api/session';
import { PlanCost } from '../changes/PlanCost';
import { LaunchInstanceDocument, PlanLaunchDocument } from '../generated/graphql';
import type {
  ControlPlaneScope,
  LaunchOptionsQuery,
  OperatingMode,
  PlanLaunchInstanceInput,
} from '../generated/graphql';
import { OperatorSelect } from '../lifecycle/OperatorSelect';
import { asSchema, hasField, initialValue, validate } from '../lib/schema';
import { Icon } from '../ui/Icons';
import { Notice, ProblemNotice } from '../ui/Problem';
import { AllocationPicker } from './AllocationPicker';
import { SchemaForm } from '../ui/SchemaForm';
import { VolumeSelects } from './VolumeSelects';
import { IntentFields, nowhere } from './IntentFields';
import type { Further } from './IntentFields';
import {
  deadlines,
  furtherOf,
  furtherProblem,
  homeless,
  modes,
  nameProblem,
  planeScopes,
  slotless,
  suggestName,
  usesOf,
} from './launch';

type Options = LaunchOptionsQuery['launchOptions'];

/** The form for what can be launched. */
export function LaunchForm({
  options,
  projectId,
  refresh,
}: {
  options: Options;
  projectId: string;
  refresh: () => void;
}) {
  const form = useLaunch(options, projectId);
  const { can } = useSession();
  const { manifest } = options;
  return (
    <form
      className="card"
      onSubmit={(event) => void form.send(event)}
      noValidate
      aria-label={`Launch ${manifest.displayName}`}
    >
      {!options.entitled && (
        <div className="card-body">
          <Notice tone="warn" icon="info">
            This app is not enabled for the project; a launch would be refused.
          </Notice>
        </div>
      )}
      <Section title="Name" text="Identifies the workload. Unique among the project's current workloads.">
        <TextInput
          aria-label="Name"
          value={form.name}
          onChange={(event) => form.setName(event.currentTarget.value)}
          error={form.errors.get('name')}
          maxLength={40}
          spellCheck={false}
          maw={380}
        />
      </Section>
      <Section
        title="Capacity"
        text="The allocations it is launched into. Only those that are ready and free are listed. Choose none to request capacity for each component below."
      >
        <AllocationPicker
          verdicts={options.allocations}
          chosen={form.chosen}
          onChange={form.setChosen}
          error={form.errors.get('allocationIds')}
          onRequested={refresh}
        />
      </Section>
      <Section title="Size" text="How many members of each component.">
        <div className="form-grid">
          {manifest.components.map((each) => (
            <NumberInput
              key={each.key}
              label={each.displayName}
              min={each.min}
              max={each.max}
              allowDecimal={false}
              clampBehavior="none"
              data-component={each.key}
              description={each.min === each.max ? `always ${each.min}` : `${each.min} to ${each.max}`}
              readOnly={each.min === each.max}
              value={form.counts[each.key] ?? ''}
              onChange={(next) => form.setCount(each.key, next)}
              error={form.errors.get(`components.${each.key}`)}
            />
          ))}
        </div>
      </Section>
      <Section
        title="Requested capacity"
        text={
          form.chosen.length === 0
            ? 'The capacity for each member. The launch requests one allocation for each: they belong to the workload, and are released when it is torn down. A scaling that names no capacity requests the same.'
            : 'The capacity for members that are added later. It is stored with the workload, and a scaling that names no capacity requests it.'
        }
      >
        {manifest.components
          .filter((each) => form.chosen.length === 0 || each.max > each.min)
          .map((each) => [each, manifest.components.indexOf(each)] as const)
          .map(([each, at]) => (
            <IntentFields
              key={each.key}
              name={each.displayName}
              value={form.further[each.key] ?? nowhere}
              onChange={(next) => form.setFurther(each.key, next)}
              error={
                form.errors.get(`components.${each.key}.intent`) ?? form.errors.get(`components.${String(at)}.intent`)
              }
            />
          ))}
        {form.chosen.length > 0 && manifest.components.every((each) => each.max === each.min) && (
          <p className="soft">The number of members of its components is fixed.</p>
        )}
      </Section>
      {manifest.volumes.length > 0 && (
        <Section title="Files" text="The volumes of the project that it uses. They outlast the workload.">
          <VolumeSelects
            projectId={form.projectId}
            slots={manifest.volumes}
            chosen={form.volumes}
            onChange={form.setVolume}
            errors={form.errors}
          />
        </Section>
      )}
      <Section title="Configuration" text="The settings that the app's schema defines.">
        <SchemaForm schema={form.schema} value={form.config} onChange={form.setConfig} errors={form.configErrors} />
      </Section>
      <Section
        title="Control plane"
        text="Whom it serves, and who runs it. A control plane that serves the whole tenant can be offered to its other projects."
      >
        <div className="form-grid">
          <Select
            label="Serves"
            data={planeScopes.filter((each) => each.value === 'PROJECT' || can('control_plane.create'))}
            value={form.plane}
            onChange={(next) => form.setPlane((next ?? 'PROJECT') as ControlPlaneScope)}
            allowDeselect={false}
            error={form.errors.get('controlPlaneScope')}
          />
          <Select
            label="Run by"
            data={modes}
            value={form.mode}
            onChange={(next) => form.setMode((next ?? 'TENANT_DEDICATED') as OperatingMode)}
            allowDeselect={false}
            error={form.errors.get('operatingMode')}
          />
          {can('identity.service_account.read') && (
            <OperatorSelect
              projectId={form.projectId}
              value={form.operator}
              onChange={form.setOperator}
              error={form.errors.get('operatorServiceAccountId')}
            />
          )}
        </div>
      </Section>
      <Section title="Deadline and reason" text="When the launch counts as failed, and why it is requested.">
        <div className="form-grid">
          <Select
            label="Deadline"
            description="Counted from now"
            data={deadlines}
            value={form.deadline}
            onChange={(next) => form.setDeadline(next ?? form.deadline)}
            allowDeselect={false}
            error={form.errors.get('deadlineSeconds')}
          />
          <TextInput
            label="Reason"
            description="Stored in the audit log"
            maxLength={500}
            value={form.reason}
            onChange={(event) => form.setReason(event.currentTarget.value)}
          />
        </div>
      </Section>
      <Cost input={form.planned} />
      {form.problem !== undefined && (
        <div className="card-body">
          <ProblemNotice problem={form.problem} reasons={form.rest} />
        </div>
      )}
      <div className="form-foot">
        {form.tried && form.errors.size + form.configErrors.size > 0 && (
          <span className="small grow" role="alert" style={{ color: 'var(--bad)' }}>
            Something above needs your attention.
          </span>
        )}
        <Button type="submit" loading={form.busy} leftSection={<Icon name="launch" size={15} />}>
          Launch
        </Button>
      </div>
    </form>
  );
}

/** What the launch would cost an hour, once the form is complete; other refusals are shown when it is sent. */
function Cost({ input }: { input: PlanLaunchInstanceInput | undefined }) {
  const settled = useSettled(input, 400);
  const read = useRead(PlanLaunchDocument, { input: settled ?? nothing }, settled === undefined);
  const plan = read.data?.planLaunchInstance;
  return (
    <Section title="Cost" text="What an hour of its capacity costs by the price book, and what its use is metered in.">
      {settled === undefined && <p className="soft">Choose capacity to see what it costs.</p>}
      {settled !== undefined && plan !== undefined && <PlanCost cost={plan.cost} />}
      {settled !== undefined && plan === undefined && read.problem !== undefined && (
        <p className="soft">The cost is not known: {read.problem.message}</p>
      )}
    </Section>
  );
}

const nothing: PlanLaunchInstanceInput = { projectId: '', appSlug: '', name: '', allocationIds: [] };

function Section({ title, text, children }: { title: string; text: string; children: ReactNode }) {
  return (
    <section className="form-section" aria-label={title}>
      <header>
        <h2>{title}</h2>
        <p>{text}</p>
      </header>
      <div className="stack" style={{ minWidth: 0 }}>
        {children}
      </div>
    </section>
  );
}

/** The form's state, its errors, and sending it. */
function useLaunch(options: Options, projectId: string) {
  const { manifest } = options;
  const navigate = useNavigate();
  const schema = useMemo(() => asSchema(manifest.configSchema), [manifest.configSchema]);
  const fit = options.allocations.filter((verdict) => verdict.compatible);
  const [name, setName] = useState(() => suggestName(manifest.appSlug));
  const [picked, setChosen] = useState<readonly string[]>(() =>
    fit.length === 1 ? fit.map((verdict) => verdict.allocation.id) : [],
  );
  const chosen = picked.filter((id) => options.allocations.some((verdict) => verdict.allocation.id === id)); // one may be in use by now
  const [counts, setCounts] = useState<Readonly<Record<string, number | string>>>(() =>
    Object.fromEntries(manifest.components.map((each) => [each.key, each.default])),
  );
  const [further, setFurthers] = useState<Readonly<Record<string, Further>>>({});
  const [config, setConfig] = useState<unknown>(() => initialValue(schema) ?? {});
  const [deadline, setDeadline] = useState('900');
  const [reason, setReason] = useState('');
  const [plane, setPlane] = useState<ControlPlaneScope>('PROJECT');
  const [mode, setMode] = useState<OperatingMode>('TENANT_DEDICATED');
  const [operator, setOperator] = useState('');
  const [volumes, setVolumes] = useState<Readonly<Record<string, string>>>({});
  const [tried, setTried] = useState(false);
  const { submit, problem, busy } = useSubmission(LaunchInstanceDocument);

  const uses = usesOf(volumes);
  const own = complaints(name, chosen, counts, further, options);
  for (const slot of slotless(manifest.volumes, volumes)) own.set(`volumes.${slot}`, 'The app needs a volume here.');
  const ownConfig = validate(schema, config);
  const placed = placeReasons(problem?.reasons ?? [], (path) => knows(path, options, schema));
  const errors = tried ? merged(own, placed.fields, '') : new Map<string, string>();
  const configErrors = tried ? merged(ownConfig, placed.fields, 'config.') : new Map<string, string>();

  const valid = own.size === 0 && ownConfig.size === 0;
  const wanted = JSON.stringify({
    projectId,
    appSlug: manifest.appSlug,
    version: manifest.version,
    name,
    allocationIds: [...chosen],
    config,
    controlPlaneScope: plane,
    operatingMode: mode,
    operatorServiceAccountId: operator === '' ? null : operator,
    volumes: uses,
    components: manifest.components.map((each) => ({
      key: each.key,
      count: Number(counts[each.key]),
      intent: furtherOf(further[each.key]),
    })),
    deadlineSeconds: Number(deadline),
  });
  const planned = useMemo(() => (valid ? (JSON.parse(wanted) as PlanLaunchInstanceInput) : undefined), [valid, wanted]);
  const send = async (event: SyntheticEvent) => {
    event.preventDefault();
    setTried(true);
    if (planned === undefined) return;
    const answer = await submit({ ...planned, reason: reason.trim() === '' ? null : reason.trim() });
    if (answer !== undefined)
      void navigate({ to: '/workloads/$id', params: { id: answer.launchInstance.instance.id } });
  };
  const setCount = (key: string, value: number | string) => setCounts((before) => ({ ...before, [key]: value }));
  const setFurther = (key: string, value: Further) => setFurthers((before) => ({ ...before, [key]: value }));
  const setVolume = (slot: string, volume: string) => setVolumes((before) => ({ ...before, [slot]: volume }));
  return {
    name,
    setName,
    volumes,
    setVolume,
    chosen,
    setChosen,
    counts,
    setCount,
    further,
    setFurther,
    config,
    setConfig,
    deadline,
    setDeadline,
    reason,
    setReason,
    plane,
    setPlane,
    mode,
    setMode,
    operator,
    setOperator,
    projectId,
    schema,
    errors,
    configErrors,
    rest: placed.rest,
    problem,
    busy,
    tried,
    send,
    planned,
  };
}

/** Returns the errors that the form itself finds, except those of the config. */
function complaints(
  name: string,
  chosen: readonly string[],
  counts: Readonly<Record<string, number | string>>,
  further: Readonly<Record<string, Further>>,
  options: Options,
): Map<string, string> {
  const found = new Map<string, string>();
  const bad = nameProblem(name);
  if (bad !== undefined) found.set('name', bad);
  const stated = options.manifest.components.filter((each) => furtherOf(further[each.key]) !== null);
  if (chosen.length === 0 && stated.length === 0)
    found.set('allocationIds', 'Choose at least one allocation, or request capacity for each component below.');
  for (const { key, min, max } of options.manifest.components) {
    const count = Number(counts[key]);
    if (counts[key] === '' || !Number.isInteger(count) || count < min || count > max)
      found.set(`components.${key}`, min === max ? `Must be ${min}.` : `Must be ${min} to ${max}.`);
    const wrong =
      homeless({ chosen: chosen.length, stated: stated.length, count }, further[key]) ?? furtherProblem(further[key]);
    if (wrong !== undefined) found.set(`components.${key}.intent`, wrong);
  }
  return found;
}

/** The fields of the form besides those of config and components. */
const fields = [
  'name',
  'allocationIds',
  'deadlineSeconds',
  'controlPlaneScope',
  'operatingMode',
  'operatorServiceAccountId',
];

/** Reports whether the form has a field for a reason of this path. */
function knows(path: string, options: Options, schema: ReturnType<typeof asSchema>): boolean {
  if (fields.includes(path)) return true;
  if (path.startsWith('config.')) return hasField(schema, path.slice('config.'.length));
  return options.manifest.components.some((each, at) =>
    [`components.${each.key}`, `components.${at}`, `components.${at}.intent`].includes(path),
  );
}

/** Returns the form's own errors and the server's of a prefix, without the prefix; the form's own take precedence. */
function merged(
  own: ReadonlyMap<string, string>,
  server: ReadonlyMap<string, string>,
  prefix: string,
): Map<string, string> {
  const all = new Map(
    [...server]
      .filter(([path]) => path.startsWith(prefix))
      .map(([path, message]) => [path.slice(prefix.length), message] as const),
  );
  for (const [path, message] of own) all.set(path, message);
  return all;
}
