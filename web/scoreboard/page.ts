// The page of a scoreboard: one table of networks and controls for the chosen measure, sorted and filtered.

/** The mean over seeds, half of its interval (null: none), and the value of each seed (null: unknown). */
type Value = [mean: number, half: number | null, seeds: (number | null)[]];
interface Network {
  name: string;
  title: string;
  /** A link into the lab, with CONTROL in place of the congestion control; empty if the lab lacks a field. */
  lab: string;
}
interface Content {
  measures: { title: string; digits: number; more: boolean }[];
  controls: { label: string; cc: string }[];
  networks: Network[];
  /** By measure, network and control. */
  values: (Value | null)[][][];
  /** By network and control: broken runs, all runs, and the first seed's run; null if the control did not run. */
  runs: ([broken: number, of: number, run: string] | null)[][];
}
interface Row {
  at: number;
  network: Network;
  values: (Value | null)[];
}

const CONTROL = "CONTROL";
const at = <E extends HTMLElement>(id: string): E => document.getElementById(id) as E;

function made<K extends keyof HTMLElementTagNameMap>(tag: K, text = "", properties: Partial<HTMLElementTagNameMap[K]> = {}): HTMLElementTagNameMap[K] {
  return Object.assign(document.createElement(tag), { textContent: text, ...properties });
}

function start(): void {
  const content = JSON.parse(at("content").textContent!) as Content;
  const measure = at<HTMLSelectElement>("measure");
  const filter = at<HTMLInputElement>("filter");
  content.measures.forEach(({ title }, which) => measure.append(made("option", title, { value: String(which) })));
  /** The control whose values sort the rows; -1: the file's order of networks. */
  let sorted = -1;
  let ascending = false;
  const show = (): void => {
    const which = Number(measure.value);
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const rows = content.networks
      .map((network, place): Row => ({ at: place, network, values: content.values[which]![place]! }))
      .filter(({ network, values }) => values.some((one) => one !== null) && words.every((word) => `${network.name} ${network.title}`.toLowerCase().includes(word)));
    if (sorted >= 0) rows.sort((a, b) => order(a.values[sorted], b.values[sorted], ascending) || a.at - b.at);
    const heads = content.controls.map(({ label }, place) => {
      const button = made("button", label, { type: "button" });
      button.addEventListener("click", () => {
        ascending = sorted === place ? !ascending : false;
        sorted = place;
        show();
      });
      const head = made("th");
      head.setAttribute("aria-sort", sorted !== place ? "none" : ascending ? "ascending" : "descending");
      head.append(button);
      return head;
    });
    const head = made("tr");
    head.append(made("th", "network", { className: "text" }), ...heads);
    at("head").replaceChildren(head);
    at("rows").replaceChildren(...rows.map((row) => line(row, content, which)));
    at("count").textContent = `${rows.length} of ${content.networks.length} networks have this measure and match.`;
  };
  measure.addEventListener("change", show);
  filter.addEventListener("input", show);
  show();
}

/** Rows without a value are last in either order. */
function order(a: Value | null | undefined, b: Value | null | undefined, ascending: boolean): number {
  if (!a || !b) return Number(!a) - Number(!b);
  return ascending ? a[0] - b[0] : b[0] - a[0];
}

function line({ at: place, network, values }: Row, content: Content, which: number): HTMLTableRowElement {
  const { digits, more } = content.measures[which]!;
  const means = values.flatMap((one) => (one ? [one[0]] : []));
  const best = more ? Math.max(...means) : Math.min(...means);
  const name = made("td", network.name, { className: "text", title: network.title });
  const cells = values.map((value, control) => {
    const run = content.runs[place]![control];
    if (!value || !run) return made("td", "–");
    const [broken, of, directory] = run;
    const [mean, half, seeds] = value;
    const { cc } = content.controls[control]!;
    const lab = network.lab !== "" && cc !== "";
    const text = half === null ? mean.toFixed(digits) : `${mean.toFixed(digits)} ± ${half.toFixed(digits)}`;
    const link = made("a", text, { href: lab ? network.lab.replaceAll(CONTROL, cc) : `${directory}/run.json`, target: "_blank", rel: "noopener" });
    const each = seeds.map((one) => one?.toFixed(digits) ?? "–").join(", ");
    link.title = `${lab ? "open seed 1 in the lab" : "the run of the first seed"}; by seed: ${each}`;
    const cell = made("td", "", { className: mean === best && means.length > 1 ? "best" : "" });
    cell.append(link);
    const part = mean === best ? 1 : more ? mean / best : best / mean;
    if (best >= 0) cell.style.setProperty("--part", `${Math.max(0, 100 * part).toFixed(1)}%`);
    if (broken > 0) cell.append(made("span", ` broken ${broken} of ${of}`, { className: "broken" }));
    return cell;
  });
  const row = made("tr");
  row.append(name, ...cells);
  return row;
}

start();
