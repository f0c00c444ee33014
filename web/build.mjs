// Builds the scripts that pages embed, and draw.css, with digests of their sources. `node build.mjs DIRECTORY` writes
// them to another directory.
import { createHash } from "node:crypto";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const out = process.argv[2] ?? join(here, "..", "src", "sawtooth", "figures", "built");
const licence = readFileSync(join(here, "node_modules", "uplot", "LICENSE"), "utf8").trim();
const version = JSON.parse(readFileSync(join(here, "node_modules", "uplot", "package.json"), "utf8")).version;

await build({
  absWorkingDir: here,
  entryPoints: { draw: "draw/index.ts", capture: "capture/page.ts", scoreboard: "scoreboard/page.ts" },
  outdir: out,
  bundle: true,
  format: "iife",
  globalName: "sawtooth",
  target: ["es2022"],
  minify: true,
  // uPlot's own comment names a host; its license text is kept in full at the beginning.
  legalComments: "none",
  banner: { js: `/*! sawtooth, Apache-2.0. With uPlot ${version}:\n${licence}\n*/`, css: `/*! With uPlot ${version}, MIT, licence in draw.js */` },
});

// Digests of the sources and of the output: a test compares both, even where npm is missing.
const digest = (file) => createHash("sha256").update(readFileSync(file)).digest("hex");
const sources = ["build.mjs", "package-lock.json", "package.json", "tsconfig.json", ...["draw", "capture", "scoreboard"].flatMap((part) => readdirSync(join(here, part)).map((name) => `${part}/${name}`))];
const lines = [
  ...sources.sort().map((name) => `${digest(join(here, name))}  web/${name}\n`),
  ...["capture.js", "draw.css", "draw.js", "scoreboard.js"].map((name) => `${digest(join(out, name))}  ${name}\n`),
];
writeFileSync(join(out, "SHA256SUMS"), lines.join(""));
