// Every operation against a platform of version 1 of the API, whose address is given to the tests.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { Client, PlatformError } from '../src/index.js';
import { TypedDocument } from '../src/document.js';
import { older } from '../src/generated/older.js';
import * as operations from '../src/generated/operations.js';

const platform = process.env['OLDER_PLATFORM'];

test('every operation is served or refused as newer', { skip: platform === undefined }, async () => {
  const client = new Client({ url: platform ?? '', older });
  const documents = Object.values(operations as Record<string, unknown>).filter((one): one is TypedDocument<unknown, object> => one instanceof TypedDocument);
  assert.ok(documents.length > 200);
  const refused: string[] = [];
  for (const document of documents) {
    try {
      assert.equal(typeof (await client.request(document, {})), 'object');
    } catch (error) {
      assert.ok(error instanceof PlatformError);
      assert.equal(error.code, 'DOCUMENT_INVALID');
      refused.push(/\s(\w+)/.exec(document.toString().trim())?.[1] ?? '');
    }
  }
  const newer = readFileSync(process.env['NEWER_OPERATIONS'] ?? '', 'utf8').trim().split('\n');
  assert.deepEqual(refused.sort(), newer.sort());
  const { instance } = await client.request(operations.GetInstanceDocument, { id: 'ins_1' });
  assert.equal(instance.status, 'a value of tomorrow');
  assert.equal('generation' in instance, false);
});
