// Texts for capacity: what an app needs, from its manifest's compatibility block, and an allocation's name.
import { words } from './format';
import { atKey } from './schema';

/** Returns short phrases such as `Bare metal` or `4 GPUs or more`; none for what the block does not state. */
export function needsOf(compatibility: unknown): string[] {
  const needs: string[] = [];
  const shape = atKey(compatibility, 'requires_capacity_shape');
  const shapes = (Array.isArray(shape) ? shape : [shape]).filter((each) => typeof each === 'string').map(shapeName);
  if (shapes.length > 0) needs.push(shapes.map((each, at) => (at === 0 ? each : lowerFirst(each))).join(' or '));
  const gpus = atKey(compatibility, 'min_gpu_count');
  if (typeof gpus === 'number' && gpus > 0) needs.push(`${gpus} GPU${gpus === 1 ? '' : 's'} or more`);
  if (atKey(compatibility, 'requires_exclusive_node') === true) needs.push('Whole node');
  const span = atKey(compatibility, 'network_span');
  if (typeof span === 'string') needs.push(spans[span] ?? words(span));
  return needs;
}

const spans: Readonly<Record<string, string>> = {
  allocation: 'One allocation',
  multi_allocation: 'Several allocations',
  cross_network: 'Across networks',
};

/** Returns an allocation's display name: its name or, because names are optional, its shape with the end of its id. */
export function allocationName(allocation: {
  readonly id: string;
  readonly name: string;
  readonly shape: string;
}): string {
  return allocation.name === '' ? `${shapeName(allocation.shape)} …${allocation.id.slice(-5)}` : allocation.name;
}

function lowerFirst(text: string): string {
  return /^[A-Z][a-z]/.test(text) ? text.charAt(0).toLowerCase() + text.slice(1) : text;
}

/** Returns the display name of a capacity shape. */
export function shapeName(shape: string): string {
  switch (shape.toUpperCase()) {
    case 'BAREMETAL':
      return 'Bare metal';
    case 'GPU_SLICE':
      return 'GPU slice';
    case 'ANY':
      return 'Any capacity';
    default:
      return words(shape);
  }
}

/** The parts of the requested capacity. */
export interface Intent {
  readonly shape: string;
  readonly gpuCount: number | null;
  readonly sku: string;
  readonly region: string;
}

/** Returns a text such as `GPU slice of 2 GPUs, h100, eu` for the parts of the requested capacity. */
export function intentWord(intent: Intent): string {
  const gpus = intent.gpuCount === null ? '' : ` of ${intent.gpuCount} GPU${intent.gpuCount === 1 ? '' : 's'}`;
  return [`${shapeName(intent.shape)}${gpus}`, intent.sku, intent.region].filter((each) => each !== '').join(', ');
}
