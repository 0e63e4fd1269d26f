// The signature of the platform's requests: an EdDSA JWT that fits one request, checked against the platform's
// published keys without asking the platform.
import { createHash } from "node:crypto";
import { createRemoteJWKSet, jwtVerify, type JWTPayload, type JWTVerifyGetKey } from "jose";
import { Refusal } from "./contract.js";

const tokenLife = 60; // seconds
const clockSkew = 30; // seconds
const maxToken = 8 << 10;

/** Claims are the content of a token whose signature is verified; check has not compared it with its request yet. */
export type Claims = JWTPayload;

export class Verifier {
  private readonly keys: JWTVerifyGetKey;

  /** The key set is fetched when first needed, kept for ten minutes, and fetched again, at most every five
   * seconds, when a token names a key that is not in it. */
  constructor(private readonly issuer: string, private readonly audience: string, jwksUrl: string) {
    this.keys = createRemoteJWKSet(new URL(jwksUrl), { timeoutDuration: 5000, cooldownDuration: 5000, cacheMaxAge: 600_000 });
  }

  /** open checks a token's signature and times, before the request's body is read. */
  async open(authorization: string | undefined): Promise<Claims> {
    const token = /^bearer ([^ ]+)$/i.exec(authorization ?? "")?.[1];
    if (token === undefined || token.length > maxToken) throw unauthorized("no bearer token");
    try {
      const { payload } = await jwtVerify(token, this.keys, {
        algorithms: ["EdDSA"], issuer: this.issuer, audience: this.audience, clockTolerance: clockSkew,
        maxTokenAge: tokenLife, requiredClaims: ["jti", "iat", "exp", "htm", "htu", "bd"],
      });
      return payload;
    } catch (error) {
      throw unauthorized(error instanceof Error ? error.message : "not verified");
    }
  }

  /** check checks an opened token against the request that carries it. */
  check(claims: Claims, method: string, target: string, body: Buffer): void {
    const digest = createHash("sha256").update(body).digest("base64url");
    if ((claims.exp ?? 0) - (claims.iat ?? 0) > tokenLife) throw unauthorized("the token lives too long");
    if (claims["htm"] !== method) throw unauthorized("htm does not match");
    if (claims["htu"] !== target) throw unauthorized("htu does not match");
    if (claims["bd"] !== digest) throw unauthorized("bd does not match the body");
  }
}

/** The reason is for the log: the caller reads only that its token was refused. */
function unauthorized(reason: string): Refusal {
  const refusal = new Refusal(401, { code: "UNAUTHENTICATED", message: "the request's token was refused" });
  refusal.cause = reason;
  return refusal;
}
