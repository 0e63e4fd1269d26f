import { describe, expect, it } from 'vitest';
import { movesOf } from './moves';

const share = (status: string) => ({ status, ownerProjectId: 'prj_owner', projectId: 'prj_other' });
const all = () => true;

describe('what can be done with a share', () => {
  it('depends on the end one stands at', () => {
    expect(movesOf(share('OFFERED'), 'prj_other', all)).toEqual(['accept', 'decline']);
    expect(movesOf(share('OFFERED'), 'prj_owner', all)).toEqual(['withdraw']);
    expect(movesOf(share('ATTACHED'), 'prj_other', all)).toEqual(['detach']);
    expect(movesOf(share('ATTACHED'), 'prj_owner', all)).toEqual(['withdraw']);
    expect(movesOf(share('OFFERED'), 'prj_third', all)).toEqual([]);
  });

  it('is nothing once it has ended, or without the keys', () => {
    for (const status of ['DECLINED', 'WITHDRAWN', 'DETACHED'])
      expect(movesOf(share(status), 'prj_owner', all)).toEqual([]);
    expect(movesOf(share('OFFERED'), 'prj_other', () => false)).toEqual([]);
  });
});
