/** Colours: those of the palette, as they are on a light and on a dark page. `palette.json` is made of Python's. */
import palette from "./palette.json";

const [LIGHT, DARK] = [palette.light, palette.dark] as Readonly<Record<string, string>>[];
const query = typeof matchMedia === "function" ? matchMedia("(prefers-color-scheme: dark)") : null;

export function isDark(): boolean {
  return query?.matches ?? false;
}

/** Calls back when the page turns dark or light, until what it returns is called. */
export function onTurn(call: () => void): () => void {
  query?.addEventListener("change", call);
  return () => query?.removeEventListener("change", call);
}

/** "#rrggbb" as it is drawn now. */
export function tint(colour: string): string {
  return (isDark() ? DARK : LIGHT)![colour.toLowerCase()] ?? colour;
}

export type Role = keyof typeof palette.roles;

/** Ink, grid and the like, as they are now. */
export function role(name: Role): string {
  return tint(palette.roles[name]);
}
