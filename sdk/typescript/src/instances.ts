// The known instances: each as it was last dispatched, without the members that have left since.
import * as fs from "node:fs";
import * as path from "node:path";
import type { Dispatch, Instance, Member, Status } from "./contract.js";
import { replaceFile } from "./files.js";

/** Known is one instance; gone is when it was decommissioned, in milliseconds. */
export interface Known { instance: Instance; members: Member[]; gone?: number }

/** remembered is how long a decommissioned instance is known to usage, in milliseconds. */
const remembered = 30 * 24 * 3600 * 1000;

export class Instances {
  private readonly known = new Map<string, Known>();

  constructor(private readonly dir: string) {
    fs.mkdirSync(dir, { recursive: true, mode: 0o700 });
    for (const name of fs.readdirSync(dir).filter((n) => n.endsWith(".json"))) {
      const one = JSON.parse(fs.readFileSync(path.join(dir, name), "utf8")) as Known;
      if (one.gone !== undefined && Date.now() - one.gone > remembered) fs.rmSync(path.join(dir, name), { force: true });
      else this.known.set(one.instance.id, one);
    }
  }

  /** get returns an instance that exists; with gone, also a decommissioned one. */
  get(id: string, gone = false): Known | undefined {
    const one = this.known.get(id);
    return one?.gone === undefined || gone ? one : undefined;
  }

  /** learn stores the members of a dispatch. Whether a node can be reached is not kept: it was true only then. */
  learn(d: Dispatch): void {
    const members = d.members.map((m) => {
      const { reachable: _, ...node } = m.node;
      return { ...m, node };
    });
    this.store({ instance: d.instance, members });
  }

  /** settle forgets what an ended operation removed: the members of a decommissioned instance, else the members that
   * left and those of an add that did not succeed. */
  settle(d: Dispatch, status: Status): void {
    const one = this.known.get(d.instance.id);
    if (one === undefined) return;
    if (d.kind === "instance.decommission" && status.state === "succeeded") {
      this.store({ ...one, members: [], gone: Date.now() });
      return;
    }
    const left = status.members.filter((m) => m.status === "removed").map((m) => m.id);
    if (d.kind === "members.add" && status.state !== "succeeded") left.push(...(d.targets ?? []));
    if (left.length > 0) this.store({ ...one, members: one.members.filter((m) => !left.includes(m.id)) });
  }

  private store(one: Known): void {
    replaceFile(path.join(this.dir, `${one.instance.id}.json`), JSON.stringify(one));
    this.known.set(one.instance.id, one);
  }
}
