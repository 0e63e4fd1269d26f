import { expect, it } from 'vitest';
import { digestOf } from './digest';

it('is the SHA-256 of the bytes', async () => {
  expect(await digestOf('abc')).toBe('sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
  expect(await digestOf('é')).toBe('sha256:4a99557e4033c3539de2eb65472017cad5f9557f7a0625a09f1c3f6e2ba69c4c');
});
