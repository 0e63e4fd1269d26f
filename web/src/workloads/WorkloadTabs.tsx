// The tabs of a workload, by its address: its current state, and what people open it for.
import { Tabs } from '@mantine/core';
import { useNavigate } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { useSession } from '../api/session';
import type { Workload } from '../lifecycle/workload';
import { LogsCard } from './LogsCard';
import { MetricsCard } from './MetricsCard';
import { TerminalTab } from './TerminalTab';
import { WorkTab } from './WorkTab';

interface Tab {
  readonly value: string;
  readonly label: string;
  readonly content: ReactNode;
  /** Whether the tab stays mounted when another is shown. */
  readonly stays?: boolean;
}

/** The tabs; the children are the first one, and the whole page where there is no other tab. */
export function WorkloadTabs({
  workload,
  tab,
  of,
  children,
}: {
  workload: Workload;
  tab: string | undefined;
  of: string | undefined;
  children: ReactNode;
}) {
  const navigate = useNavigate();
  const { can } = useSession();
  const go = (to: string, about?: string) =>
    void navigate({
      to: '/workloads/$id',
      params: { id: workload.id },
      search: { ...(to === 'overview' ? {} : { tab: to }), ...(about === undefined ? {} : { of: about }) },
      resetScroll: false,
    });
  const { work } = workload.manifest;
  const tabs: Tab[] = [{ value: 'overview', label: 'Overview', content: children }];
  if (work && workload.releasedAt === null)
    tabs.push({
      value: 'work',
      label: work.title,
      content: <WorkTab workload={workload} work={work} chosen={of} onChoose={(id) => go('work', id)} />,
    });
  tabs.push({
    value: 'logs',
    label: 'Logs',
    content: <LogsCard workload={workload} of={of} onChoose={(id) => go('logs', id)} />,
  });
  if (can(`${workload.permissionFamily}.node.read`))
    tabs.push({ value: 'metrics', label: 'Metrics', content: <MetricsCard workload={workload} /> });
  if (workload.releasedAt === null)
    tabs.push({
      value: 'terminal',
      label: 'Terminal',
      content: <TerminalTab workload={workload} of={of} />,
      stays: true,
    });
  const shown = tabs.find((each) => each.value === tab)?.value ?? 'overview';
  return (
    <Tabs
      keepMounted={false}
      keepMountedMode="display-none"
      value={shown}
      onChange={(next) => go(next ?? 'overview')}
      className="workload-tabs"
    >
      <Tabs.List mb="md" aria-label={`Parts of ${workload.name}`}>
        {tabs.map((each) => (
          <Tabs.Tab key={each.value} value={each.value}>
            {each.label}
          </Tabs.Tab>
        ))}
      </Tabs.List>
      {tabs.map((each) => (
        <Tabs.Panel key={each.value} value={each.value} keepMounted={each.stays === true}>
          {each.content}
        </Tabs.Panel>
      ))}
    </Tabs>
  );
}
