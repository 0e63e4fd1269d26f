// Changing a workload's version and configuration.
import { Modal, Select } from '@mantine/core';
import { useMemo, useState } from 'react';
import { ask, useRead, useSender } from '../api/hooks';
import {
  GenerationsDocument,
  PlanUpgradeInstanceDocument,
  UpgradeChoicesDocument,
  UpgradeInstanceDocument,
} from '../generated/graphql';
import type { UpgradeChoicesQuery } from '../generated/graphql';
import { SchemaForm } from '../ui/SchemaForm';
import { words } from '../lib/format';
import { asSchema, fieldsOf, validate } from '../lib/schema';
import { ProblemNotice } from '../ui/Problem';
import { Loading } from '../ui/parts';
import { ChangeDialog } from '../changes/ChangeDialog';
import { DeadlineField } from './fields';
import { RollbackDialog } from './InstanceDialogs';
import type { InstanceDialogProps } from './InstanceDialogs';

type Choice = UpgradeChoicesQuery['app']['manifests']['edges'][number]['node'];

/** Reads the versions to choose from, then shows the dialog. */
export function UpgradeDialog(props: InstanceDialogProps) {
  const { data, problem, refresh } = useRead(UpgradeChoicesDocument, { slug: props.workload.appSlug });
  if (data === undefined)
    return (
      <Reading title={`Upgrade ${props.workload.name}`} problem={problem} refresh={refresh} onClose={props.onClose} />
    );
  return <UpgradeForm {...props} choices={data.app.manifests.edges.map((edge) => edge.node)} />;
}

/** Reads the workload's generations, then shows the dialog. */
export function GenerationsDialog(props: InstanceDialogProps) {
  const { data, problem, refresh } = useRead(GenerationsDocument, { id: props.workload.id });
  if (data === undefined)
    return (
      <Reading title={`Roll back ${props.workload.name}`} problem={problem} refresh={refresh} onClose={props.onClose} />
    );
  return <RollbackDialog {...props} generations={data.instance.generations} />;
}

function Reading({
  title,
  problem,
  refresh,
  onClose,
}: {
  title: string;
  problem: Parameters<typeof ProblemNotice>[0]['problem'] | undefined;
  refresh: () => void;
  onClose: () => void;
}) {
  return (
    <Modal opened onClose={onClose} title={<b>{title}</b>} size="lg">
      <div style={{ minHeight: 220 }}>
        {problem === undefined ? <Loading lines={6} /> : <ProblemNotice problem={problem} onRetry={refresh} />}
      </div>
    </Modal>
  );
}

function UpgradeForm({ workload, choices, onClose, onDone }: InstanceDialogProps & { choices: readonly Choice[] }) {
  const [version, setVersion] = useState(
    () => choices.find((each) => each.stage === 'ACTIVE')?.version ?? workload.appVersion,
  );
  const [config, setConfig] = useState<unknown>(workload.config);
  const [deadline, setDeadline] = useState('1800');
  const send = useSender(UpgradeInstanceDocument);
  const schema = useMemo(
    () => asSchema(choices.find((each) => each.version === version)?.configSchema),
    [choices, version],
  );
  const changed = JSON.stringify(config) !== JSON.stringify(workload.config);
  const what = {
    instanceId: workload.id,
    version: version === workload.appVersion ? null : version,
    config: changed ? config : null,
  };
  return (
    <ChangeDialog
      onClose={onClose}
      onDone={onDone}
      change={{
        title: `Upgrade ${workload.name}`,
        act: 'Upgrade',
        fields: ['version', 'config', 'deadlineSeconds'],
        reasonNeeded: false,
        intro:
          'Changes the version, the configuration, or both, in the order that the app considers safe. A failed upgrade does not stop the workload, and you can roll back.',
        wrong: upgradeProblems(changed || what.version !== null, validate(schema, config)),
        plan: () =>
          ask(PlanUpgradeInstanceDocument, { input: { ...what, deadlineSeconds: Number(deadline) } }).then((answer) =>
            answer.problem === undefined ? { data: answer.data.planUpgradeInstance } : answer,
          ),
        send: (given) => send({ ...what, deadlineSeconds: Number(deadline), ...given }),
        form: (errors) => (
          <div className="stack">
            <Select
              label="Version"
              description={`Now running ${workload.appVersion}`}
              data={versions(choices, workload.appVersion)}
              value={version}
              onChange={(next) => setVersion(next ?? version)}
              allowDeselect={false}
              error={errors.get('version')}
            />
            {fieldsOf(schema).length > 0 && (
              <fieldset className="group">
                <legend>Configuration</legend>
                <SchemaForm schema={schema} value={config} onChange={setConfig} errors={below(errors, 'config.')} />
              </fieldset>
            )}
            {errors.has('config') && (
              <p className="small" role="alert" style={{ color: 'var(--bad)' }}>
                {errors.get('config')}
              </p>
            )}
            <DeadlineField value={deadline} onChange={setDeadline} errors={errors} />
          </div>
        ),
      }}
    />
  );
}

/** Returns the versions to choose from: those that may be launched, and the current one. */
export function versions(
  choices: readonly Pick<Choice, 'version' | 'stage'>[],
  present: string,
): { value: string; label: string }[] {
  const rows = choices.filter((each) => each.stage === 'ACTIVE' || each.stage === 'CANARY' || each.version === present);
  const listed = rows.map((each) => ({
    value: each.version,
    label:
      each.version === present ? `${each.version}, current` : `${each.version}, ${words(each.stage).toLowerCase()}`,
  }));
  return listed.some((each) => each.value === present)
    ? listed
    : [...listed, { value: present, label: `${present}, current` }];
}

/** Returns the errors that the form finds: nothing to change, or a config that does not fit its schema. */
export function upgradeProblems(changes: boolean, config: ReadonlyMap<string, string>): Map<string, string> {
  const found = new Map(
    [...config].map(([path, message]) => [path === '' ? 'config' : `config.${path}`, message] as const),
  );
  if (!changes) found.set('version', 'Choose another version, or change the configuration.');
  return found;
}

/** Returns the messages of a prefix, without the prefix. */
function below(errors: ReadonlyMap<string, string>, prefix: string): Map<string, string> {
  return new Map(
    [...errors]
      .filter(([path]) => path.startsWith(prefix))
      .map(([path, message]) => [path.slice(prefix.length), message] as const),
  );
}
