// What is known of instances: each as it was last dispatched, without the members that have left since.
import * as fs from "node:fs";
import * as path from "node:path";
import type { Dispatch, Instance, Member, Status } from "./contract.js";
import { replaceFile } from "./files.js";

export interface Known { instance: Instance; members: Member[] }

export class Instances {
  private readonly known = new Map<string, Known>();

  constructor(private readonly dir: string) {
    fs.mkdirSync(dir, { recursive: true, mode: 0o700 });
    for (const name of fs.readdirSync(dir).filter((n) => n.endsWith(".json"))) {
      const one = JSON.parse(fs.readFileSync(path.join(dir, name), "utf8")) as Known;
      this.known.set(one.instance.id, one);
    }
  }

  get(id: string): Known | undefined { return this.known.get(id); }

  /** learn takes the members of a dispatch for the truth. Whether a node can be reached was so then only. */
  learn(d: Dispatch): void {
    const members = d.members.map((m) => {
      const { reachable: _, ...node } = m.node;
      return { ...m, node };
    });
    this.store({ instance: d.instance, members });
  }

  /** settle forgets what an operation took away: the instance when it was decommissioned, else the members that left
   * and those of an add that came to nothing. */
  settle(d: Dispatch, status: Status): void {
    const one = this.known.get(d.instance.id);
    if (one === undefined) return;
    if (d.kind === "instance.decommission" && status.state === "succeeded") {
      fs.rmSync(this.file(d.instance.id), { force: true });
      this.known.delete(d.instance.id);
      return;
    }
    const left = status.members.filter((m) => m.status === "removed").map((m) => m.id);
    if (d.kind === "members.add" && status.state !== "succeeded") left.push(...(d.targets ?? []));
    if (left.length > 0) this.store({ ...one, members: one.members.filter((m) => !left.includes(m.id)) });
  }

  private store(one: Known): void {
    replaceFile(this.file(one.instance.id), JSON.stringify(one));
    this.known.set(one.instance.id, one);
  }

  private file(id: string): string { return path.join(this.dir, `${id}.json`); }
}
