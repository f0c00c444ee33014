// The switch for the native core, and the way to the results: there where `sawtooth lab` serves the page, else hidden.

import type { Asked } from "./asked";
import type { Native } from "./protocol";
import { answered, asking, key } from "./served";

/** What has more packets than this takes a page about a second. */
export const HEAVY_PACKETS = 1e6;
const KEPT = "sawtooth-native";

const at = <E extends HTMLElement>(id: string): E => document.getElementById(id) as E;

export class NativeSwitch {
  private given: string | undefined;
  private readonly page = crypto.getRandomValues(new Uint32Array(4)).join("-");
  /** Events in a millisecond: in the page, and natively. */
  private inPage = NaN;

  /** `changed`: the question is to be answered anew. */
  constructor(changed: () => void) {
    const box = at<HTMLInputElement>("native");
    box.addEventListener("change", () => {
      keep(box.checked);
      this.say();
      changed();
    });
  }

  /** Asks the server whether it is there. */
  async find(): Promise<void> {
    const found = key();
    if (found === undefined) return;
    try {
      await answered(asking("api/hello", found));
    } catch {
      return;
    }
    this.given = found;
    at<HTMLInputElement>("native").checked = kept();
    at<HTMLAnchorElement>("results-link").href = "results";
    at("served-by").hidden = false;
    this.say();
  }

  /** Where it is computed, in the words above. */
  private say(): void {
    at("computed").textContent = at<HTMLInputElement>("native").checked
      ? "It is computed in this page, and what is heavy by sawtooth lab on this machine, to which the page sends the question; nothing leaves the machine."
      : "Everything is computed here, in this page; nothing is sent anywhere.";
  }

  /** How a question of so many packets is to be run natively; undefined: in the page. */
  wanted(asked: Asked, packets: number): Native | undefined {
    const { given, page } = this;
    if (given === undefined || packets < HEAVY_PACKETS || !at<HTMLInputElement>("native").checked) return undefined;
    const { scenario, alone } = asked.question;
    return { key: given, page, text: JSON.stringify({ ...scenario, alone }) };
  }

  /** What is said of a heavy question that runs in the page. */
  get offer(): string {
    return this.given === undefined || at<HTMLInputElement>("native").checked ? "" : " The native core of this machine, above, takes less time.";
  }

  /** What was measured of a finished run. */
  ran(native: boolean, events: number, workedMs: number): void {
    // Shorter ones say little.
    const speed = workedMs > 20 ? events / workedMs : NaN;
    if (!native && speed > 0) this.inPage = speed;
    const faster = speed / this.inPage;
    const times = faster >= 1.05 ? `, ${faster.toFixed(1)}× faster than the page` : "";
    at("native-said").textContent = native ? `This ran on the native core${times}.` : "";
  }
}

/** What was switched on stays so, where the browser keeps anything for pages. */
function kept(): boolean {
  try {
    return localStorage.getItem(KEPT) === "yes";
  } catch {
    return false;
  }
}

function keep(on: boolean): void {
  try {
    localStorage.setItem(KEPT, on ? "yes" : "no");
  } catch {
    // It is switched on until the page is closed.
  }
}
