/** Groups: panels that show the same stretch of x, and share the pointer's x. */
import type { Ends } from "./scales";

export interface Member {
  /** Shows this stretch of x, or everything. */
  show(range: Ends | null): void;
  /**
   * Draws a line at this x, or none. Unless `quiet`, the line snaps to the nearest data and a readout shows the values.
   */
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

/** The page's group of that name; without a name, a new group. */
export function group(name?: string): Group {
  if (name === undefined) return new Group();
  const found = named.get(name) ?? new Group();
  named.set(name, found);
  return found;
}
