import { describe, expect, it } from 'vitest';
import { filterOf, noSearch } from './filter';

describe('what is looked for in the audit', () => {
  it('is of the project, and by people unless everybody is asked for', () => {
    const filter = filterOf(noSearch, 'prj_x');
    expect(filter.projectId).toBe('prj_x');
    expect(filter.actorKinds).toContain('USER');
    expect(filterOf({ ...noSearch, who: 'all' }, 'prj_x').actorKinds).toBeNull();
  });

  it('leaves out what is empty, and reads times in the reader’s zone', () => {
    const filter = filterOf({ ...noSearch, actor: ' usr_a ', from: '2026-01-02T03:04', to: 'soon' }, 'prj_x');
    expect(filter.actorId).toBe('usr_a');
    expect(filter.objectId).toBeNull();
    expect(filter.from).toBe(new Date('2026-01-02T03:04').toISOString());
    expect(filter.to).toBeNull();
  });

  it('tells allowed, refused and break-glass apart', () => {
    expect(filterOf({ ...noSearch, outcome: 'denied' }, 'p').allowed).toBe(false);
    expect(filterOf({ ...noSearch, outcome: 'allowed' }, 'p').allowed).toBe(true);
    expect(filterOf({ ...noSearch, outcome: 'glass' }, 'p')).toMatchObject({ allowed: null, breakGlass: true });
  });
});
