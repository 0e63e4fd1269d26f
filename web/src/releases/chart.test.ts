import { describe, expect, it } from 'vitest';
import { linesOf, percentOf } from './chart';

const point = (
  canaryLaunches: number,
  canaryFailed: number,
  activeLaunches: number,
  activeFailed: number,
  evidence = 0,
) => ({ canaryLaunches, canaryFailed, activeLaunches, activeFailed, evidence });

describe('the chart of a canary', () => {
  it('begins a line with the first launch of its version', () => {
    const lines = linesOf([point(0, 0, 1, 0), point(1, 1, 1, 0), point(2, 1, 1, 0)], 10, 100, 50);
    expect(lines.canary).toBe('50.0,0.0 100.0,25.0');
    expect(lines.active).toBe('0.0,50.0 50.0,50.0 100.0,50.0');
  });

  it('shows the evidence against the threshold, and stays in the box', () => {
    expect(linesOf([point(1, 0, 1, 0, 5), point(2, 0, 1, 0, 40)], 10, 100, 50).evidence).toBe('0.0,25.0 100.0,0.0');
    expect(linesOf([point(1, 0, 1, 0, -3)], 10, 100, 50).evidence).toBe('100.0,50.0');
    expect(linesOf([], 10, 100, 50)).toEqual({ canary: '', active: '', evidence: '' });
  });

  it('tells a share in percent', () => {
    expect([null, 0, 0.0123, 0.5, 1].map(percentOf)).toEqual(['—', '0 %', '1.2 %', '50 %', '100 %']);
  });
});
