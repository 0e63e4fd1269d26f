import { expect, it } from 'vitest';
import { eventName, eventTone, isMinor } from './events';

it.each([
  ['apps.instance.requested', 'Requested', 'busy', false],
  ['apps.instance.running', 'Running', 'good', false],
  ['apps.instance.healthy', 'Healthy', 'good', false],
  ['apps.instance.unhealthy', 'Unhealthy', 'bad', false],
  ['apps.instance.member_failed', 'Member failed', 'bad', false],
  ['apps.instance.deleting', 'Deleting', 'warn', false],
  ['apps.instance.deleted', 'Deleted', 'idle', false],
  ['apps.instance.start_completed', 'Start completed', 'good', false],
  ['apps.instance.member_changed', 'Member changed', 'busy', true],
  ['apps.operation.progress', 'Progress', 'busy', true],
  ['apps.operation.canceling', 'Canceling', 'warn', true],
  ['apps.operation.succeeded', 'Succeeded', 'good', true],
  ['apps.operation.failed', 'Failed', 'bad', false],
] as const)('shows %s as %s', (type, name, tone, minor) => {
  expect([eventName(type), eventTone(type), isMinor(type)]).toEqual([name, tone, minor]);
});
