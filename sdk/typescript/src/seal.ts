// Secrets of node tasks: sealed to the node that opens them, for one instance. A sealed box is libsodium's: X25519 with
// a key pair of its own, XSalsa20-Poly1305, and a nonce that is BLAKE2b over both public keys.
import { createHmac, createPrivateKey, createPublicKey, diffieHellman, generateKeyPairSync, randomBytes } from "node:crypto";
import * as fs from "node:fs";
import { hsalsa, secretbox } from "@noble/ciphers/salsa.js";
import { blake2b } from "@noble/hashes/blake2.js";
import { maxSealed } from "./contract.js";
import { replaceFile } from "./files.js";

const keySize = 32;
const nonceSize = 24;
const spki = Buffer.from("302a300506032b656e032100", "hex"); // the DER bytes before a raw X25519 key
const pkcs8 = Buffer.from("302e020100300506032b656e04220420", "hex");

/** seal encrypts a value so that only the node with this sealing key can read it, and only for a task of this instance.
 * Sealing the same value twice returns two texts: both may be stored, but not compared. */
export function seal(sealingKey: string, instanceId: string, value: string | Uint8Array): string {
  if (instanceId === "") throw new Error("seal: the instance id must not be empty");
  const raw = Buffer.from(value);
  if (raw.length > maxSealed) throw new Error(`seal: a value of ${raw.length} bytes is larger than ${maxSealed}`);
  const theirs = Buffer.from(sealingKey, "base64");
  if (theirs.toString("base64") !== sealingKey || theirs.length !== keySize) {
    throw new Error("seal: the sealing key is not 32 bytes in base64");
  }
  const payload = JSON.stringify({ instanceId, value: raw.toString("base64") });
  const { publicKey, privateKey } = generateKeyPairSync("x25519");
  const ours = publicKey.export({ type: "spki", format: "der" }).subarray(-keySize);
  const shared = diffieHellman({ privateKey, publicKey: createPublicKey(der(spki, theirs, "spki")) });
  const box = secretbox(boxKey(shared), nonceOf(ours, theirs)).seal(Buffer.from(payload));
  return Buffer.concat([ours, box]).toString("base64");
}

/** open is seal's counterpart, for tests: it opens a box with the node's private key. */
export function open(privateKey: Uint8Array, sealed: string): { instanceId: string; value: Buffer } {
  const raw = Buffer.from(sealed, "base64");
  const own = createPrivateKey(der(pkcs8, privateKey, "pkcs8"));
  const ours = createPublicKey(own).export({ type: "spki", format: "der" }).subarray(-keySize);
  const theirs = raw.subarray(0, keySize);
  const shared = diffieHellman({ privateKey: own, publicKey: createPublicKey(der(spki, theirs, "spki")) });
  const text = secretbox(boxKey(shared), nonceOf(theirs, ours)).open(raw.subarray(keySize));
  const { instanceId, value } = JSON.parse(Buffer.from(text).toString()) as { instanceId: string; value: string };
  return { instanceId, value: Buffer.from(value, "base64") };
}

function der<T extends "spki" | "pkcs8">(head: Buffer, key: Uint8Array, type: T): { key: Buffer; format: "der"; type: T } {
  return { key: Buffer.concat([head, key]), format: "der", type };
}

function nonceOf(first: Uint8Array, second: Uint8Array): Uint8Array {
  return blake2b(Buffer.concat([first, second]), { dkLen: nonceSize });
}

/** boxKey returns the key that crypto_box derives from a shared secret: HSalsa20 of it with a nonce of zeros. */
function boxKey(shared: Uint8Array): Uint8Array {
  const out = new Uint32Array(8);
  const sigma = words(Buffer.from("expand 32-byte k"));
  hsalsa(sigma, words(shared), new Uint32Array(4), out);
  const key = Buffer.alloc(keySize);
  out.forEach((word, n) => key.writeUInt32LE(word, 4 * n));
  return key;
}

function words(bytes: Uint8Array): Uint32Array {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return Uint32Array.from({ length: bytes.length / 4 }, (_, n) => view.getUint32(4 * n, true));
}

/** Keys derives passwords from a key of the adapter's own, which is only on its disk: the same words give the same
 * password, so that no password has to be stored. */
export class Keys {
  private readonly key: Buffer;

  constructor(file: string) {
    if (!fs.existsSync(file)) replaceFile(file, randomBytes(32));
    this.key = fs.readFileSync(file);
  }

  /** password returns 64 hexadecimal digits for these words, such as an instance's id and a user's name. */
  password(...words: string[]): string {
    return createHmac("sha256", this.key).update(JSON.stringify(words)).digest("hex");
  }
}
