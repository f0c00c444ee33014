// Sharing: a link, a frame for other pages, and a picture that includes the numbers, settings and address.

import { role } from "../../draw/colours";
import { svg, type Chart } from "../../draw/index";
import { made } from "../fields";

const [WIDTH, HEIGHT, ROOM] = [1200, 630, 40];
const FONT = "system-ui, sans-serif";

const at = <E extends HTMLElement>(id: string): E => document.getElementById(id) as E;

export interface Shared {
  link: string;
  embed: string;
  title: string;
  settings: string;
  /** The name and path of each flow. */
  paths: readonly { name: string; canvas: HTMLCanvasElement }[];
  window: Chart | undefined;
}

/** The button and its dialog. `shared`: what to share at the moment. */
export function sharing(shared: () => Shared): void {
  const said = (words: string): void => void (at("shared").textContent = words);
  at("share").addEventListener("click", () => {
    const place = at("sharing");
    place.hidden = !place.hidden;
    at("share").setAttribute("aria-expanded", String(!place.hidden));
    const { link, embed, title } = shared();
    at<HTMLInputElement>("share-link").value = link;
    at<HTMLInputElement>("share-embed").value = `<iframe src="${embed.replaceAll("&", "&amp;")}" title="${title}" width="760" height="720"></iframe>`;
    said("");
    if (!place.hidden) at<HTMLInputElement>("share-link").select();
  });
  at("share-copy").addEventListener("click", () => {
    // Pages that are neither encrypted nor from this machine have no clipboard.
    const copied = navigator.clipboard?.writeText(shared().link) ?? Promise.reject(new Error("no clipboard"));
    copied.then(
      () => said("The link is copied."),
      () => said("The browser did not let the page copy; copy the link from its field."),
    );
  });
  at("share-picture").addEventListener("click", () => {
    picture(shared()).then(
      (blob) => {
        const url = URL.createObjectURL(blob);
        Object.assign(made("a", ""), { href: url, download: "same-line.png" }).click();
        setTimeout(() => URL.revokeObjectURL(url), 10_000);
        said("The picture is saved.");
      },
      (error: unknown) => said(`The picture could not be made: ${error instanceof Error ? error.message : String(error)}`),
    );
  });
}

async function picture({ link, title, settings, paths, window }: Shared): Promise<Blob> {
  const canvas = made("canvas", "");
  [canvas.width, canvas.height] = [WIDTH, HEIGHT];
  const pen = canvas.getContext("2d")!;
  const text = (words: string, y: number, size: number, colour: "ink" | "muted", weight = 400): void => {
    pen.font = `${weight} ${size}px ${FONT}`;
    pen.fillStyle = role(colour);
    pen.fillText(words, ROOM, y, WIDTH - 2 * ROOM);
  };
  pen.fillStyle = role("paper");
  pen.fillRect(0, 0, WIDTH, HEIGHT);
  text(title, 70, 42, "ink", 700);
  text(settings, 112, 24, "muted");
  const [top, foot, beside] = [140, HEIGHT - 60, 720];
  const each = (foot - top) / Math.max(1, paths.length);
  paths.forEach(({ name, canvas: one }, which) => {
    text(name, top + which * each + 20, 22, "ink", 600);
    const scale = Math.min((beside - ROOM) / one.width, (each - 30) / one.height);
    pen.drawImage(one, ROOM, top + which * each + 30, one.width * scale, one.height * scale);
  });
  if (window !== undefined) {
    const url = URL.createObjectURL(svg(window));
    try {
      const drawn = new Image();
      drawn.src = url;
      await drawn.decode();
      const scale = Math.min((WIDTH - ROOM - beside) / drawn.naturalWidth, (foot - top) / drawn.naturalHeight);
      pen.drawImage(drawn, beside, top, drawn.naturalWidth * scale, drawn.naturalHeight * scale);
    } finally {
      URL.revokeObjectURL(url);
    }
  }
  text(link, HEIGHT - 26, 20, "muted");
  return await new Promise((done, failed) => canvas.toBlob((blob) => (blob ? done(blob) : failed(new Error("the browser made no PNG")))));
}
