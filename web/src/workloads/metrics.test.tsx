// @vitest-environment happy-dom
import { MantineProvider } from '@mantine/core';
import { act } from 'react';
import { createRoot } from 'react-dom/client';
import type { Root } from 'react-dom/client';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Charts } from './MetricsCard';
import { chartsOf, gapsOf, partsOf, sentenceOf, topOf } from './metrics';
import type { Metrics } from './metrics';

vi.stubGlobal('IS_REACT_ACT_ENVIRONMENT', true);
Object.defineProperty(document, 'fonts', { value: new EventTarget() }); // which this environment lacks
vi.mock('../api/hooks', () => ({ useRead: vi.fn() }));
vi.mock('../api/session', () => ({ useSession: vi.fn() }));
vi.mock('../lifecycle/MemberDialogs', () => ({ memberName: vi.fn() }));
vi.mock('./useMembers', () => ({ useMembers: vi.fn() }));

const none = {
  memoryBytes: null,
  netReceivedPerSecond: null,
  netSentPerSecond: null,
  diskReadPerSecond: null,
  diskWrittenPerSecond: null,
  gpu: null,
  gpuMemoryBytes: null,
};
const point = (cpu: number | null, max = cpu): Metrics['points'][number] => ({
  ...none,
  at: '2026-11-24T00:00:00Z',
  samples: cpu === null ? 0 : 1,
  cpu: cpu === null ? null : { average: cpu, max: max ?? 0 },
});
const points = [point(null), point(0.5), point(1, 1.5), point(null), point(0.25)];
const limits = { cpuLimit: 2, memoryLimitBytes: null, gpus: 0, gpusSimulated: false, gpuMemoryTotalBytes: null };

describe('a chart', () => {
  const [cpu] = chartsOf(limits);
  if (cpu === undefined) throw new Error('there is no chart of CPU');
  it('is parted by gaps, and a lone point is a dash', () => {
    expect(partsOf(points, 'cpu', 2, 400, 100)).toEqual(['100,75 200,50', '350,87.5 400,87.5']);
    expect(gapsOf(points)).toBe(1);
    expect(partsOf([point(null)], 'cpu', 2, 400, 100)).toEqual([]);
  });
  it('goes up to what a member may use, and is said in a sentence', () => {
    expect(topOf(cpu, points)).toBe(2);
    expect(sentenceOf(cpu, points)).toBe(
      'CPU. CPU: last 0.25 CPU, on average 0.58 CPU, at most 1.5 CPU. The limit is 2 CPU.',
    );
    expect(sentenceOf(cpu, [])).toBe('CPU: nothing was measured.');
  });
  it('of GPUs is there for real ones alone', () => {
    const titles = (more: object) => chartsOf({ ...limits, ...more }).map((chart) => chart.title);
    expect(titles({ gpus: 2 })).toContain('GPU memory');
    expect(titles({ gpus: 2, gpusSimulated: true })).not.toContain('GPU');
  });
});

describe('the charts', () => {
  let root: Root;
  let box: HTMLElement;
  beforeEach(() => {
    box = document.createElement('div');
    document.body.append(box);
    root = createRoot(box);
  });
  afterEach(() => {
    act(() => root.unmount());
    box.remove();
  });
  const draw = (metrics: Metrics, more = {}) =>
    act(() =>
      root.render(
        <MantineProvider>
          <Charts metrics={metrics} limits={{ ...limits, ...more }} />
        </MantineProvider>,
      ),
    );

  it('are images with a text, and a table instead', () => {
    draw({ stepSeconds: 10, points }, { gpus: 1, gpusSimulated: true });
    const images = [...box.querySelectorAll('svg[role="img"]')];
    expect(images).toHaveLength(4);
    expect(images[0]?.getAttribute('aria-label')).toContain('at most 1.5 CPU');
    expect(images[0]?.querySelectorAll('polyline')).toHaveLength(2);
    expect(box.textContent).toContain('10 seconds of it are gaps');
    expect(box.textContent).toContain('Its GPUs are simulated');
    act(() => box.querySelector<HTMLButtonElement>('button[aria-pressed]')?.click());
    expect(box.querySelector('table')?.textContent).toContain('1.5 CPU');
    expect(box.querySelector('svg')).toBeNull();
  });
  it('say so when there is nothing', () => {
    draw({ stepSeconds: 600, points: [point(null)] });
    expect(box.textContent).toContain('Nothing was measured');
  });
});
