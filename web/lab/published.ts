// Published figures of a path, as in the package (src/sawtooth/data/published); the build embeds them in the page.

export interface Published {
  name: string;
  source: string;
  curves: { cc: string; points: { loss: number; mbps: number }[] }[];
}

declare const PUBLISHED: readonly Published[];

/** The figures of that name. */
export function published(name: string | undefined): Published | undefined {
  return PUBLISHED.find((one) => one.name === name);
}
