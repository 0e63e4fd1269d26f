// @vitest-environment happy-dom
import { act, useEffect } from 'react';
import { createRoot } from 'react-dom/client';
import type { Root } from 'react-dom/client';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { useDraft } from './useDraft';
import { useEvery } from './useEvery';

vi.stubGlobal('IS_REACT_ACT_ENVIRONMENT', true);

let root: Root;
let box: HTMLElement;
let runs = 0;

function Polled({ again, on = true }: { again: number; on?: boolean }) {
  useEvery(1000, on, async () => void (runs += 1), again);
  return null;
}

beforeEach(() => {
  vi.useFakeTimers();
  runs = 0;
  box = document.createElement('div');
  root = createRoot(box);
});
afterEach(() => {
  act(() => root.unmount());
  vi.useRealTimers();
});

const passes = (milliseconds: number) => act(() => vi.advanceTimersByTimeAsync(milliseconds));
const seen = (hidden: boolean) => {
  Object.defineProperty(document, 'hidden', { value: hidden, configurable: true });
  return act(async () => void document.dispatchEvent(new Event('visibilitychange')));
};

it('runs at once, then after each interval, and at once when something else is wanted', async () => {
  await act(async () => root.render(<Polled again={0} />));
  expect(runs).toBe(1);
  await passes(2000);
  expect(runs).toBe(3);
  await act(async () => root.render(<Polled again={1} />));
  expect(runs).toBe(4);
  await act(async () => root.render(<Polled again={1} on={false} />));
  await passes(5000);
  expect(runs).toBe(4);
});

it('rests while nobody sees the page', async () => {
  await act(async () => root.render(<Polled again={0} />));
  await seen(true);
  await passes(5000);
  expect(runs).toBe(1);
  await seen(false);
  expect(runs).toBe(2);
});

it('keeps what was typed while its form is closed', () => {
  const seenAs: { typed: string; type: (value: string) => void }[] = [];
  const Form = ({ name }: { name: string }) => {
    const [typed, type] = useDraft(name, () => 'first');
    useEffect(() => void seenAs.push({ typed, type }));
    return null;
  };
  act(() => root.render(<Form key="a" name="a" />));
  act(() => seenAs.at(-1)?.type('half a script'));
  act(() => root.render(<Form key="b" name="b" />));
  expect(seenAs.at(-1)?.typed).toBe('first');
  act(() => root.render(<Form key="a" name="a" />));
  expect(seenAs.at(-1)?.typed).toBe('half a script');
});
