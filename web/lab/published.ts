// Published figures of a path, as the package ships them (src/sawtooth/data/published); the build puts them into the page.

export interface Published {
  name: string;
  source: string;
  curves: { cc: string; points: { loss: number; mbps: number }[] }[];
}

declare const PUBLISHED: readonly Published[];

/** Those of that name. */
export function published(name: string | undefined): Published | undefined {
  return PUBLISHED.find((one) => one.name === name);
}
