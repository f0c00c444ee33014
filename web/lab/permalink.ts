// A link to the page holds the whole question, after the number sign: nothing of it is sent to any server.

import type { Question } from "./asked";
import { shaped, type Scenario } from "./scenario";

const LONGEST = 20_000;

/** What stands after "#". */
export function written({ scenario, alone }: Question): string {
  const { interval: _, ...told } = scenario;
  return encodeURIComponent(JSON.stringify(alone ? { ...told, alone } : told)).replace(/%(2C|3A|24|2F|7B|7D|5B|5D)/g, (one) => decodeURIComponent(one));
}

/** None where it is not a link that this page made. Whatever its fields hold is looked at when it is compiled. */
export function question(hash: string): Question | undefined {
  const text = hash.replace(/^#/, "");
  if (text === "" || text.length > LONGEST) return undefined;
  try {
    const { alone, ...scenario } = shaped(JSON.parse(decodeURIComponent(text))) as Scenario & { alone?: unknown };
    return { scenario, alone: alone === true };
  } catch {
    return undefined;
  }
}
