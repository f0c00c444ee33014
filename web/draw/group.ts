/** Groups: panels that show the same stretch of x, and the same x under the pointer. */
import type { Ends } from "./scales";

export interface Member {
  /** Shows this stretch of x, or all. */
  show(range: Ends | null): void;
  /** Has a line at this x, or none. Without `quiet` the line is at the nearest data, and a readout says them. */
  point(x: number | null, quiet: boolean): void;
}

export class Group {
  private readonly members = new Set<Member>();
  range: Ends | null = null;

  join(member: Member): void {
    this.members.add(member);
  }

  leave(member: Member): void {
    this.members.delete(member);
  }

  show(range: Ends | null): void {
    this.range = range;
    for (const one of this.members) one.show(range);
  }

  point(x: number | null, from: Member, quiet = false): void {
    for (const one of this.members) if (one !== from) one.point(x, quiet);
  }
}

const named = new Map<string, Group>();

/** The group of that name on this page; without a name one of its own. */
export function group(name?: string): Group {
  if (name === undefined) return new Group();
  const found = named.get(name) ?? new Group();
  named.set(name, found);
  return found;
}
