import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import * as http from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import { exportJWK, generateKeyPair, SignJWT, type JWTPayload } from "jose";
import { Refusal } from "../src/contract.js";
import { Verifier } from "../src/verify.js";

const issuer = "https://platform.test";
const body = Buffer.from('{"a":1}');
const keys = await generateKeyPair("EdDSA", { crv: "Ed25519" });
const others = await generateKeyPair("EdDSA", { crv: "Ed25519" });
let server: http.Server;
let verifier: Verifier;

before(async () => {
  const set = JSON.stringify({ keys: [{ ...(await exportJWK(keys.publicKey)), kid: "k1", alg: "EdDSA", use: "sig" }] });
  server = http.createServer((_, res) => res.end(set)).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  verifier = new Verifier(issuer, "counter", `http://127.0.0.1:${(server.address() as AddressInfo).port}/jwks`);
});
after(() => server.close());

async function token(change: JWTPayload = {}, key = keys.privateKey, kid = "k1"): Promise<string> {
  const now = Math.floor(Date.now() / 1000);
  const claims = {
    iss: issuer, aud: "counter", iat: now, exp: now + 60, jti: "j", htm: "PUT", htu: "/v1/operations/op_1?x=1",
    bd: createHash("sha256").update(body).digest("base64url"), ...change,
  };
  return `Bearer ${await new SignJWT(claims).setProtectedHeader({ alg: "EdDSA", kid }).sign(key)}`;
}

async function verify(authorization: string | undefined): Promise<void> {
  verifier.check(await verifier.open(authorization), "PUT", "/v1/operations/op_1?x=1", body);
}

test("a token of the platform for this request is taken, also twice", async () => {
  const good = await token();
  await verify(good);
  await verify(good);
});

test("any other token is refused without a reason for the caller", async () => {
  const now = Math.floor(Date.now() / 1000);
  const bad: (string | undefined)[] = [
    undefined, "Bearer x", "Basic eA==", await token({}, others.privateKey), await token({}, keys.privateKey, "k2"),
    await token({ iss: "https://other.test" }), await token({ aud: "other" }), await token({ exp: now - 31, iat: now - 91 }),
    await token({ iat: now + 45, exp: now + 100 }), await token({ exp: now + 3600 }), await token({ htm: "POST" }),
    await token({ htu: "/v1/operations/op_1" }), await token({ bd: "" }),
  ];
  for (const [n, authorization] of bad.entries()) {
    await assert.rejects(verify(authorization), (error) => error instanceof Refusal && error.status === 401 && error.body.message === "the request's token was refused", `token ${n}`);
  }
});
