// A link to the page holds the whole question after the number sign, so no server receives any of it.

import type { Question } from "./experiment";
import { PRESETS } from "./presets";
import { InputError } from "./problem";
import { shaped, type Scenario } from "./scenario";

const LONGEST = 20_000;

/**
 * The part after "#" has only letters, digits, "-", "_", "." and "%", with ":", "," and "/" between them. Mail, chats
 * and Markdown take all of these as part of the link; brackets, quotes, stars and tildes would end it or have a
 * meaning.
 */
export function written({ scenario, alone }: Question): string {
  const { interval: _, ...rest } = scenario;
  return escaped(JSON.stringify(alone ? { ...rest, alone } : rest));
}

/** The short form: quantities of the path, and the duration if it differs from this one. */
const PATH = ["rate", "rtt", "loss", "ack_loss", "reverse_rate", "queue"] as const;
const DURATION = "10 s";
const KEYS = ["cc", ...PATH, "duration", "together", "step", "view"];

/** How to display it: a step of the story, and for other pages the story only. */
export interface View {
  step?: number;
  embed?: true;
}

/**
 * The short form, "cc=cubic,bbr&rate=100Mbit/s&rtt=20ms&loss=1%25", if it can hold the whole question; otherwise the
 * full form.
 */
export function short(question: Question, { step, embed }: View = {}): string {
  const { scenario, alone } = question;
  const { path = {}, flows = [], duration = DURATION } = scenario;
  const parts: [string, unknown][] = [["cc", flows.map(({ cc }) => cc).join(",")]];
  for (const key of PATH) if (path[key] !== undefined) parts.push([key, path[key]]);
  if (duration !== DURATION) parts.push(["duration", duration]);
  if (!alone) parts.push(["together", "1"]);
  const plain = parts.map(([key, value]) => `${key}=${escaped(String(value).replaceAll(" ", ""))}`).join("&");
  try {
    if (written(fromShort(plain).question) !== written(named(question))) return written(question);
  } catch {
    return written(question);
  }
  return `${plain}${step === undefined ? "" : `&step=${step}`}${embed ? "&view=embed" : ""}`;
}

export function isShort(hash: string): boolean {
  return /^#?[a-z_]+=/.test(hash);
}

/** The display settings in an address; a damaged one has none. */
export function view(hash: string): View {
  try {
    return isShort(hash) ? fromShort(hash.replace(/^#/, "")).view : {};
  } catch {
    return {};
  }
}

function fromShort(text: string): { question: Question; view: View } {
  const given = new Map<string, string>();
  for (const part of text.split("&")) {
    const [key, value] = [part.split("=", 1)[0]!, part.slice(part.indexOf("=") + 1)];
    const fix = `a link has ${KEYS.join(", ")}, each once`;
    if (!KEYS.includes(key) || given.has(key)) throw new InputError("bad-link", `"${key}" is ${given.has(key) ? "there twice" : "no part of a link"}`, fix);
    given.set(key, decoded(value).replace(/^([\d.]+)([A-Za-z])/, "$1 $2"));
  }
  const path = Object.fromEntries(PATH.flatMap((key) => (given.has(key) ? [[key, given.get(key)!]] : [])));
  const flows = (given.get("cc") ?? "cubic").split(",").map((cc) => ({ cc }));
  const question = named({ scenario: { duration: given.get("duration") ?? DURATION, path, flows } as Scenario, alone: !given.has("together") });
  const step = Number(given.get("step") ?? NaN);
  return { question, view: { ...([1, 2, 3].includes(step) ? { step } : {}), ...(given.get("view") === "embed" ? { embed: true } : {}) } };
}

/** A question equal to a preset gets its name, whoever wrote it. */
function named({ scenario: { name: _, interval: __, ...scenario }, alone }: Question): Question {
  const same = PRESETS.find(({ question }) => {
    const { name: ___, ...other } = question.scenario;
    return question.alone === alone && JSON.stringify(other) === JSON.stringify(scenario);
  });
  return same?.question ?? { scenario, alone };
}

/**
 * The question in an address, if any. Raises InputError if this page did not make it; the compiler checks the fields'
 * contents.
 */
export function question(hash: string): Question | undefined {
  const text = hash.replace(/^#/, "");
  if (text === "") return undefined;
  if (text.length > LONGEST) {
    throw new InputError("bad-link", `it has ${text.length} characters, and at most ${LONGEST} are read`, "open the scenario as a file instead");
  }
  if (isShort(text)) return fromShort(text).question;
  const { alone, ...scenario } = shaped(parsed(text)) as Scenario & { alone?: unknown };
  return { scenario, alone: alone === true };
}

/** Whether an address asks this question, in whatever form. */
export function asks(hash: string, other: Question): boolean {
  try {
    const linked = question(hash);
    return linked !== undefined && written(linked) === written(other);
  } catch {
    return false;
  }
}

function escaped(text: string): string {
  const one = (letter: string): string => `%${letter.charCodeAt(0).toString(16).toUpperCase()}`;
  return encodeURIComponent(text)
    .replace(/%(2C|3A|2F)/g, (code) => decodeURIComponent(code))
    .replace(/[!'()*~]/g, one);
}

const FIX = "ask for it again, or start from what is shown";

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new InputError("bad-link", 'a "%" in it is not followed by two digits, as if it were cut off', FIX);
  }
}

function parsed(text: string): unknown {
  const plain = decoded(text);
  const none = "what stands after its # is no question of this page";
  try {
    const value: unknown = JSON.parse(plain);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
  } catch {
    const cut = plain.startsWith("{") && !plain.endsWith("}");
    throw new InputError("bad-link", cut ? "it breaks off before its end" : none, FIX);
  }
  throw new InputError("bad-link", none, FIX);
}
