/** Colours of the palette on light and dark pages. Python's palette generates `palette.json`. */
import palette from "./palette.json";

const [LIGHT, DARK] = [palette.light, palette.dark] as Readonly<Record<string, string>>[];
const query = typeof matchMedia === "function" ? matchMedia("(prefers-color-scheme: dark)") : null;

export function isDark(): boolean {
  return query?.matches ?? false;
}

/** Calls back when the page turns dark or light. Call the returned function to stop. */
export function onThemeChange(call: () => void): () => void {
  query?.addEventListener("change", call);
  return () => query?.removeEventListener("change", call);
}

/** The colour "#rrggbb" adapted to the current theme. */
export function tint(colour: string): string {
  return (isDark() ? DARK : LIGHT)![colour.toLowerCase()] ?? colour;
}

export type Role = keyof typeof palette.roles;

/** Ink, grid and other roles in the current theme. */
export function role(name: Role): string {
  return tint(palette.roles[name]);
}
