/** Recorder: implements the canvas calls that figures use, and writes them as SVG. */
import { PathText, trim } from "./legend";

interface State {
  fillStyle: string;
  strokeStyle: string;
  lineWidth: number;
  globalAlpha: number;
  font: string;
  textAlign: string;
  textBaseline: string;
  dash: readonly number[];
  clip: string;
  transform: string;
}

const ANCHOR: Record<string, string> = { left: "start", start: "start", right: "end", end: "end", center: "middle" };
const BASELINE: Record<string, number> = { top: 0.8, middle: 0.33, bottom: -0.2, alphabetic: 0 };
let clips = 0;

export function escaped(text: string): string {
  return text.replace(/[&<>"]/g, (letter) => `&#${letter.charCodeAt(0)};`);
}

export class Recorder {
  private readonly out: string[] = [];
  private path = new PathText();
  private readonly kept: State[] = [];
  private state: State = {
    fillStyle: "#000",
    strokeStyle: "#000",
    lineWidth: 1,
    globalAlpha: 1,
    font: "10px sans-serif",
    textAlign: "left",
    textBaseline: "alphabetic",
    dash: [],
    clip: "",
    transform: "",
  };
  lineJoin = "";
  lineCap = "";
  lineDashOffset = 0;
  private readonly ruler = document.createElement("canvas").getContext("2d")!;

  set fillStyle(value: string) { this.state.fillStyle = value; }
  set strokeStyle(value: string) { this.state.strokeStyle = value; }
  get strokeStyle(): string { return this.state.strokeStyle; }
  set lineWidth(value: number) { this.state.lineWidth = value; }
  set globalAlpha(value: number) { this.state.globalAlpha = value; }
  set font(value: string) { this.state.font = value; }
  set textAlign(value: string) { this.state.textAlign = value; }
  set textBaseline(value: string) { this.state.textBaseline = value; }
  get textBaseline(): string { return this.state.textBaseline; }

  setLineDash(dash: readonly number[]): void { this.state.dash = dash; }
  save(): void { this.kept.push({ ...this.state }); }
  restore(): void { this.state = this.kept.pop() ?? this.state; }
  translate(x: number, y: number): void { this.state.transform += `translate(${trim(x)},${trim(y)})`; }
  rotate(angle: number): void { this.state.transform += `rotate(${trim((angle * 180) / Math.PI)})`; }
  clearRect(): void { /* Nothing is there yet. */ }
  beginPath(): void { this.path = new PathText(); }
  moveTo(x: number, y: number): void { this.path.moveTo(x, y); }
  lineTo(x: number, y: number): void { this.path.lineTo(x, y); }
  arc(x: number, y: number, r: number): void { this.path.arc(x, y, r); }
  rect(x: number, y: number, width: number, height: number): void { this.path.rect(x, y, width, height); }
  closePath(): void { this.path.closePath(); }

  measureText(text: string): TextMetrics {
    this.ruler.font = this.state.font;
    return this.ruler.measureText(text);
  }

  clip(): void {
    const name = `clip-${++clips}`;
    this.out.push(`<clipPath id="${name}"><path d="${this.path.text}"/></clipPath>`);
    this.state.clip = ` clip-path="url(#${name})"`;
  }

  stroke(): void {
    if (this.path.text === "") return;
    const { strokeStyle, lineWidth, dash } = this.state;
    const dashes = dash.length ? ` stroke-dasharray="${dash.map(trim).join(" ")}"` : "";
    this.add(`<path d="${this.path.text}" fill="none" stroke="${strokeStyle}" stroke-width="${trim(lineWidth)}" stroke-linejoin="round"${this.lineCap === "round" ? ' stroke-linecap="round"' : ""}${dashes}`);
  }

  fill(): void {
    if (this.path.text !== "") this.add(`<path d="${this.path.text}" fill="${this.state.fillStyle}"`);
  }

  fillRect(x: number, y: number, width: number, height: number): void {
    this.add(`<rect x="${trim(x)}" y="${trim(y)}" width="${trim(width)}" height="${trim(height)}" fill="${this.state.fillStyle}"`);
  }

  fillText(text: string, x: number, y: number): void {
    this.letters(text, x, y, `fill="${this.state.fillStyle}"`);
  }

  strokeText(text: string, x: number, y: number): void {
    const { strokeStyle, lineWidth } = this.state;
    this.letters(text, x, y, `fill="none" stroke="${strokeStyle}" stroke-width="${trim(lineWidth)}" stroke-linejoin="round"`);
  }

  text(): string {
    return this.out.join("");
  }

  private letters(text: string, x: number, y: number, how: string): void {
    const { font, textAlign, textBaseline } = this.state;
    const size = Number(/([\d.]+)px/.exec(font)?.[1] ?? 10);
    const down = y + size * (BASELINE[textBaseline] ?? 0);
    const place = `x="${trim(x)}" y="${trim(down)}" font-size="${size}" text-anchor="${ANCHOR[textAlign] ?? "start"}"`;
    this.add(`<text ${place} ${how}`, `${escaped(text)}</text>`);
  }

  private add(opening: string, content?: string): void {
    const { globalAlpha, clip, transform } = this.state;
    const opacity = globalAlpha < 1 ? ` opacity="${globalAlpha}"` : "";
    const turned = transform === "" ? "" : ` transform="${transform}"`;
    this.out.push(`${opening}${opacity}${clip}${turned}${content === undefined ? "/>" : `>${content}`}`);
  }
}
