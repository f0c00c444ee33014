// The switch for the native core, and the link to the results. Visible if `sawtooth lab` serves the page, otherwise
// hidden.

import type { Experiment } from "./experiment";
import type { Native } from "./protocol";
import { answered, asking, key } from "./served";

/** This many packets take a page about a second. */
export const HEAVY_PACKETS = 1e6;
const KEPT = "sawtooth-native";

const at = <E extends HTMLElement>(id: string): E => document.getElementById(id) as E;

export class NativeSwitch {
  private given: string | undefined;
  private readonly page = crypto.getRandomValues(new Uint32Array(4)).join("-");
  /** Events per millisecond, in the page and natively. */
  private inPage = NaN;

  /** `changed`: asks the question again. */
  constructor(changed: () => void) {
    const box = at<HTMLInputElement>("native");
    box.addEventListener("change", () => {
      keep(box.checked);
      this.say();
      changed();
    });
  }

  get isThere(): boolean {
    return this.given !== undefined;
  }

  /** Checks whether the server is available. */
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

  /** Says in the text above where the simulation runs. */
  private say(): void {
    at("computed").textContent = at<HTMLInputElement>("native").checked
      ? "Light questions are computed in this page, heavy ones by sawtooth lab on this machine. Nothing leaves the machine."
      : "Everything is computed in this page; nothing is sent anywhere.";
  }

  /** How to run a question of this many packets natively; undefined: in the page. */
  wanted(experiment: Experiment, packets: number): Native | undefined {
    const { given, page } = this;
    if (given === undefined || packets < HEAVY_PACKETS || !at<HTMLInputElement>("native").checked) return undefined;
    const { scenario, alone } = experiment.question;
    return { key: given, page, text: JSON.stringify({ ...scenario, alone }) };
  }

  /** The remark on a heavy question that runs in the page. */
  get offer(): string {
    return this.given === undefined || at<HTMLInputElement>("native").checked ? "" : " The native core of this machine, above, takes less time.";
  }

  /** Records the speed of a finished run. */
  ran(native: boolean, events: number, workedMs: number): void {
    // Shorter runs are not representative.
    const speed = workedMs > 20 ? events / workedMs : NaN;
    if (!native && speed > 0) this.inPage = speed;
    const faster = speed / this.inPage;
    const times = faster >= 1.05 ? `, ${faster.toFixed(1)}× faster than the page` : "";
    at("native-said").textContent = native ? `This ran on the native core${times}.` : "";
  }
}

/** Remembers the setting, if the browser stores anything for pages. */
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
    // Without storage, the setting lasts until the page is closed.
  }
}
