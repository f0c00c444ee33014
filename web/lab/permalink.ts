// A link to the page holds the whole question, after the number sign: nothing of it is sent to any server.

import type { Question } from "./asked";
import { InputError } from "./problem";
import { shaped, type Scenario } from "./scenario";

const LONGEST = 20_000;

/** What stands after "#": letters, digits, "-", "_", "." and "%", and ":", "," and "/" between them. Mail, chats and Markdown take all of it
 *  for the link; brackets, quotes, stars and tildes would end it there, or mean something. */
export function written({ scenario, alone }: Question): string {
  const { interval: _, ...told } = scenario;
  const encoded = encodeURIComponent(JSON.stringify(alone ? { ...told, alone } : told));
  const escaped = (one: string): string => `%${one.charCodeAt(0).toString(16).toUpperCase()}`;
  return encoded.replace(/%(2C|3A|2F)/g, (one) => decodeURIComponent(one)).replace(/[!'()*~]/g, escaped);
}

/** None of an address without one. Raises InputError of what this page did not make; what its fields hold is looked at when it is compiled. */
export function question(hash: string): Question | undefined {
  const text = hash.replace(/^#/, "");
  if (text === "") return undefined;
  if (text.length > LONGEST) {
    throw new InputError("bad-link", `it has ${text.length} characters, and at most ${LONGEST} are read`, "open the scenario as a file instead");
  }
  const { alone, ...scenario } = shaped(parsed(text)) as Scenario & { alone?: unknown };
  return { scenario, alone: alone === true };
}

/** Whether an address asks this, however it is written. */
export function asks(hash: string, asked: Question): boolean {
  try {
    const linked = question(hash);
    return linked !== undefined && written(linked) === written(asked);
  } catch {
    return false;
  }
}

function parsed(text: string): unknown {
  const fix = "ask for it again, or start from what is shown";
  let plain: string;
  try {
    plain = decodeURIComponent(text);
  } catch {
    throw new InputError("bad-link", 'a "%" in it is not followed by two digits, as if it were cut off', fix);
  }
  const none = "what stands after its # is no question of this page";
  try {
    const told: unknown = JSON.parse(plain);
    if (typeof told === "object" && told !== null && !Array.isArray(told)) return told;
  } catch {
    const cut = plain.startsWith("{") && !plain.endsWith("}");
    throw new InputError("bad-link", cut ? "it breaks off before its end" : none, fix);
  }
  throw new InputError("bad-link", none, fix);
}
