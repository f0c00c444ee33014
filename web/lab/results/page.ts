// The page of results, which `sawtooth lab` serves: a list, and below it the opened or compared results.

import { InputError, words } from "../problem";
import { answered, asking, key } from "../served";
import { List, type Row } from "./list";
import { link, show, type ResultView } from "./view";

const at = <E extends HTMLElement>(id: string): E => document.getElementById(id) as E;

async function main(): Promise<void> {
  const given = key();
  if (given === undefined) {
    at("listed").textContent = "This page has no key: open the address that sawtooth lab printed.";
    return;
  }
  let latest = new AbortController();
  let chosen: readonly string[] = [];
  const compare = at<HTMLButtonElement>("compare");
  const list = new List(at("results"), at("more"), showCount, (row) => (location.hash = `open=${row.id}`));
  const filter = (): void => list.filter(at<HTMLInputElement>("words").value, at<HTMLSelectElement>("state").value);
  at("words").addEventListener("input", filter);
  at("state").addEventListener("change", filter);
  compare.addEventListener("click", () => {
    const query = new URLSearchParams({ compare: chosen.join(",") });
    for (const name of ["within", "omit"]) {
      const value = at<HTMLInputElement>(name).value.trim();
      if (value !== "") query.set(name, value);
    }
    // Opening the same result again asks again.
    if (location.hash === `#${query}`) void look();
    else location.hash = String(query);
  });
  addEventListener("hashchange", () => void look());
  try {
    await load(given, list);
  } catch (error) {
    wrong(error);
  }
  document.body.dataset["ready"] = String(Math.round(performance.now()));
  await look();

  function showCount(shown: number, all: number, ids: readonly string[]): void {
    chosen = ids;
    compare.disabled = ids.length < 2;
    const reference = list?.named(ids[0] ?? "");
    at("chosen").textContent = reference === undefined ? "" : `${ids.length} chosen; ${reference.name} is the reference.`;
    at("listed").textContent = shown === all ? `${all} results` : `${shown} of ${all} results`;
  }

  /** Opens what the address names. */
  async function look(): Promise<void> {
    latest.abort();
    latest = new AbortController();
    const { signal } = latest;
    const address = new URLSearchParams(location.hash.slice(1));
    const [open, ids] = [address.get("open"), address.get("compare")];
    at("wrong").hidden = true;
    const row = open === null ? undefined : list.named(open);
    // Comparing large studies takes a while; a report is ready at once.
    at("shown").replaceChildren(...link(row?.report ?? false));
    if (open === null && ids === null) return;
    at("busy").textContent = open === null ? "Comparing …" : `Opening ${row?.name ?? "it"} …`;
    try {
      const query = new URLSearchParams({ ids: ids ?? "", ...pick(address, "within"), ...pick(address, "omit") });
      const path = open === null ? `api/compare?${query}` : `api/result/${encodeURIComponent(open)}`;
      const answer = await answered(asking(path, given!, signal));
      const found = (await answer.json()) as ResultView;
      if (signal.aborted) return;
      show(at("shown"), found, row?.report ?? false);
      document.body.dataset["shown"] = location.hash;
    } catch (error) {
      if (!signal.aborted) wrong(error);
    } finally {
      if (!signal.aborted) at("busy").textContent = "";
    }
  }
}

function pick(address: URLSearchParams, name: string): Record<string, string> {
  const value = address.get(name);
  return value === null ? {} : { [name]: value };
}

/** Lists rows as they arrive, so that the first of thousands appear at once. */
async function load(given: string, list: List): Promise<void> {
  const { body } = await answered(asking("api/results", given));
  const reader = body!.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    const lines = (rest + (value ?? "")).split("\n");
    rest = lines.pop()!;
    const rows = lines.map((line) => JSON.parse(line) as Row | { all: number; shown: number; directory: string });
    list.add(rows.filter((one): one is Row => "id" in one));
    for (const one of rows) if ("all" in one) at("where").textContent = where(one);
    if (done) return;
  }
}

function where({ all, shown, directory }: { all: number; shown: number; directory: string }): string {
  if (all === 0) return `There are no results in ${directory}. sawtooth run writes them there; sawtooth lab --results names another directory.`;
  return `Below ${directory}${shown < all ? `; the newest ${shown} of ${all}` : ""}.`;
}

function wrong(error: unknown): void {
  const message = at("wrong");
  message.hidden = false;
  if (error instanceof InputError) message.textContent = `${error.field === undefined ? "" : `${error.field}: `}${words(error)}`;
  else message.textContent = error instanceof Error ? error.message : String(error);
}

void main();
