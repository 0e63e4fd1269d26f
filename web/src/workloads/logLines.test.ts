import { describe, expect, it } from 'vitest';
import { gapText, grow, maxShown, textOf } from './logLines';
import type { LogLine } from './logLines';

function line(text: string, change: Partial<LogLine> = {}): LogLine {
  return {
    cursor: text,
    process: 'server',
    at: '2026-11-23T10:00:00.000000Z',
    stream: 'STDOUT',
    text,
    continues: false,
    gap: null,
    ...change,
  };
}

describe('lines', () => {
  it('keeps the newest', () => {
    const many = Array.from({ length: maxShown }, (_, i) => line(String(i)));
    const grown = grow(many, [line('last')]);
    expect(grown).toHaveLength(maxShown);
    expect(grown.at(-1)?.text).toBe('last');
    expect(grown[0]?.text).toBe('1');
  });

  it('joins the parts of a line, and says what is missing', () => {
    expect(
      textOf([
        line('one ', { continues: true }),
        line('two'),
        line('oh', { stream: 'STDERR' }),
        line('', { at: null, stream: null, gap: { lines: 3, restarted: false } }),
      ]),
    ).toBe(
      '2026-11-23T10:00:00.000000Z server | one two\n2026-11-23T10:00:00.000000Z server ! oh\n--- server: 3 lines are not kept any more.\n',
    );
    expect(gapText({ lines: null, restarted: true })).toContain('restarted');
  });
});
