// The playhead: one place in time, in the windows of the first screen and in the figures, of whatever plays.

import { group, type Member } from "../draw/group";

const GROUPS = ["story", "time"];

/** Puts it there, or takes it away. */
export function playhead(t: number | null, from: Member): void {
  for (const name of GROUPS) group(name).point(t, from, true);
}
