// Sentences about a capture; the core writes those about a transfer.

import { LIMITS, quantity, whole } from "../../capture/sequence";
import type { Data, Facts } from "./facts";
import type { Listed } from "./protocol";

export function rate(bps: number | null): string {
  return bps === null ? "–" : quantity(bps, "bit/s", 4);
}

/** What limited the transfer for most of the time. */
export function limit({ limits }: Data): string {
  const [first] = Object.entries(limits).sort(([, one], [, other]) => other - one);
  if (first === undefined || first[1] === 0) return "–";
  return Object.values(LIMITS).find(({ fact }) => fact === first[0])?.name ?? "unknown";
}

export const percent = (part: number): string => `${Number((100 * part).toPrecision(3))}%`;

/** Describes the capture, and what it lacks if it has no connection to show. */
export function capture({ facts, count, connections }: Listed, name: string, took: string): string {
  const what = `${name}: ${counted(facts.packets, "packet")}`;
  if (count === 0) return `${what}, and no TCP among them that could be read${others(facts)}.`;
  const listed = connections.length < count ? `, of which the ${connections.length} with the most data are listed` : "";
  return `${what}, ${counted(count, "TCP connection")}${listed}; read in ${took}.`;
}

function others({ not_tcp, unreadable, not_looked_into }: Omit<Facts, "connections">): string {
  const inside = Object.entries(not_looked_into).map(([name, number]) => `${whole(number)} of ${name}`);
  const parts = [
    ...(not_tcp > 0 ? [`${whole(not_tcp)} of other protocols${inside.length > 0 ? ` (${inside.join(", ")})` : ""}`] : []),
    ...(unreadable > 0 ? [`${whole(unreadable)} too short or contradictory`] : []),
  ];
  return parts.length > 0 ? `: ${parts.join(", ")}` : "";
}

function counted(number: number, what: string): string {
  return `${whole(number)} ${what}${number === 1 ? "" : "s"}`;
}
