// The charts of what a member uses: the list of charts, their lines, and their texts.
import type { MemberMetricsQuery, MetricsRange } from '../generated/graphql';
import { bytes } from '../lib/format';

export type Metrics = MemberMetricsQuery['member']['metrics'];
type Point = Metrics['points'][number];
type Measure = Exclude<keyof Point, 'at' | 'samples' | '__typename'>;

/** The ranges, as people choose them. */
export const ranges: readonly { value: MetricsRange; label: string }[] = [
  { value: 'QUARTER_HOUR', label: '15 min' },
  { value: 'HOUR', label: '1 h' },
  { value: 'DAY', label: '24 h' },
  { value: 'WEEK', label: 'Week' },
];

/** One line of a chart. */
export interface Line {
  readonly measure: Measure;
  readonly name: string;
}

/** One chart: lines of one unit. */
export interface Chart {
  readonly title: string;
  readonly lines: readonly Line[];
  readonly text: (value: number) => string;
  /** The highest possible value, where that is known. */
  readonly limit: number | null;
}

const cores = (value: number) => `${value.toFixed(2).replace(/\.?0+$/, '')} CPU`;
const rate = (value: number) => `${bytes(value)}/s`;
const percent = (value: number) => `${Math.round(value * 100)} %`;

/** What a member may use, where that is known. */
export interface Limits {
  readonly cpuLimit: number | null;
  readonly memoryLimitBytes: number | null;
  readonly gpus: number;
  readonly gpusSimulated: boolean;
  readonly gpuMemoryTotalBytes: number | null;
}

/** Returns the charts of a member; those of GPUs where it has measured GPUs. */
export function chartsOf(limits: Limits | undefined): Chart[] {
  const charts: Chart[] = [
    { title: 'CPU', lines: [{ measure: 'cpu', name: 'CPU' }], text: cores, limit: limits?.cpuLimit ?? null },
    {
      title: 'Memory',
      lines: [{ measure: 'memoryBytes', name: 'Memory' }],
      text: bytes,
      limit: limits?.memoryLimitBytes ?? null,
    },
    {
      title: 'Network',
      lines: [
        { measure: 'netReceivedPerSecond', name: 'Received' },
        { measure: 'netSentPerSecond', name: 'Sent' },
      ],
      text: rate,
      limit: null,
    },
    {
      title: 'Disk',
      lines: [
        { measure: 'diskReadPerSecond', name: 'Read' },
        { measure: 'diskWrittenPerSecond', name: 'Written' },
      ],
      text: rate,
      limit: null,
    },
  ];
  if (limits !== undefined && limits.gpus > 0 && !limits.gpusSimulated)
    charts.push(
      { title: 'GPU', lines: [{ measure: 'gpu', name: 'At work' }], text: percent, limit: 1 },
      {
        title: 'GPU memory',
        lines: [{ measure: 'gpuMemoryBytes', name: 'In use' }],
        text: bytes,
        limit: limits.gpuMemoryTotalBytes,
      },
    );
  return charts;
}

/** The parts of a line on a chart of this size, each a list of points, split at gaps. A lone point is a short dash. */
export function partsOf(
  points: readonly Point[],
  measure: Measure,
  top: number,
  width: number,
  height: number,
): string[] {
  const parts: string[][] = [];
  let open = false;
  const step = points.length > 1 ? width / (points.length - 1) : width;
  points.forEach((point, index) => {
    const value = point[measure];
    if (value === null) {
      open = false;
      return;
    }
    const y = height - (Math.min(value.average, top) / top) * height;
    if (!open) parts.push([]);
    open = true;
    parts.at(-1)?.push(`${round(index * step)},${round(y)}`);
  });
  return parts.map((part) => {
    const [first = ''] = part;
    if (part.length > 1) return part.join(' ');
    const [x = '0', y = '0'] = first.split(',');
    return `${round(Math.max(0, Number(x) - step / 2))},${y} ${round(Math.min(width, Number(x) + step / 2))},${y}`;
  });
}

const round = (value: number) => Math.round(value * 10) / 10;

/** The value at the top of a chart: the limit, or a little above the highest value. */
export function topOf(chart: Chart, points: readonly Point[]): number {
  const highest = Math.max(
    0,
    ...chart.lines.flatMap(({ measure }) => points.map((point) => point[measure]?.average ?? 0)),
  );
  if (chart.limit !== null && chart.limit > 0) return Math.max(chart.limit, highest);
  return highest === 0 ? 1 : highest * 1.1;
}

/** One row of the summary: what a line was now, on average, and at most. */
export interface Summary {
  readonly name: string;
  readonly now: string;
  readonly average: string;
  readonly max: string;
}

/** Returns a line in words; undefined where nothing is known of it. */
export function summaryOf(line: Line, points: readonly Point[], text: (value: number) => string): Summary | undefined {
  let total = 0;
  let samples = 0;
  let max = 0;
  let now: number | undefined;
  for (const point of points) {
    const value = point[line.measure];
    if (value === null) continue;
    total += value.average * point.samples;
    samples += point.samples;
    max = Math.max(max, value.max);
    now = value.average;
  }
  if (samples === 0 || now === undefined) return undefined;
  return { name: line.name, now: text(now), average: text(total / samples), max: text(max) };
}

/** The chart in a sentence, for people who do not see it. */
export function sentenceOf(chart: Chart, points: readonly Point[]): string {
  const said = chart.lines.flatMap((line) => {
    const summary = summaryOf(line, points, chart.text);
    return summary === undefined
      ? []
      : [`${summary.name}: last ${summary.now}, on average ${summary.average}, at most ${summary.max}.`];
  });
  if (said.length === 0) return `${chart.title}: nothing was measured.`;
  const limit = chart.limit === null ? '' : ` The limit is ${chart.text(chart.limit)}.`;
  return `${chart.title}. ${said.join(' ')}${limit}`;
}

/** How long nothing was measured, in steps, since the first sample of the range. */
export function gapsOf(points: readonly Point[]): number {
  const first = points.findIndex((point) => point.samples > 0);
  const last = points.findLastIndex((point) => point.samples > 0);
  return points.slice(Math.max(0, first), last + 1).filter((point) => point.samples === 0).length;
}
