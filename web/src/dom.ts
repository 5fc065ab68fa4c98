// Elements of the page.

import { spans } from "./format.ts";

type Child = Node | string | null | undefined | false;
type Props = Record<string, string | number | boolean | undefined | ((e: Event) => void)>;

/** An element; `on...` properties are listeners, `true` is an attribute without a value. */
export function el<K extends keyof HTMLElementTagNameMap>(tag: K, props: Props = {}, ...children: Child[]): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(props)) {
    if (typeof value === "function") element.addEventListener(key.slice(2), value);
    else if (value === true) element.setAttribute(key, "");
    else if (value !== undefined && value !== false) element.setAttribute(key, String(value));
  }
  element.append(...children.filter((c): c is Node | string => c !== null && c !== undefined && c !== false));
  return element;
}

/** Prose with its code. */
export function prose(words: string): Child[] {
  return spans(words).map(({ text, code }) => (code ? el("code", {}, text) : text));
}

/** Words that are heard and not seen. */
export function unseen(words: string): HTMLElement {
  return el("span", { class: "unseen" }, words);
}

let widths: ResizeObserver | undefined;

/** A part that scrolls by itself where it is too wide. The keyboard scrolls it then, and what has the focus is seen whole. */
export function scroller(label: string, ...children: Child[]): HTMLElement {
  widths ??= new ResizeObserver((entries) => {
    for (const { target } of entries) {
      if (target.scrollWidth > target.clientWidth) target.setAttribute("tabindex", "0");
      else target.removeAttribute("tabindex");
    }
  });
  const seen = (e: Event): void => {
    if (e.target !== box) (e.target as Element).scrollIntoView({ behavior: "instant", block: "nearest", inline: "nearest" });
  };
  const box = el("div", { class: "scroll", role: "group", "aria-label": label, onfocusin: seen }, ...children);
  widths.observe(box);
  return box;
}

/** A labelled choice. */
export function select(label: string, options: readonly { value: string; label: string }[], chosen: string, pick: (value: string) => void): HTMLElement {
  const box = el("select", { onchange: () => pick(box.value) });
  for (const o of options) box.append(el("option", { value: o.value, selected: o.value === chosen }, o.label));
  return el("label", { class: "choice" }, el("span", {}, label), box);
}

const waiting = new Map<Element, () => void>();
let observer: IntersectionObserver | undefined;

/** Builds the inside of `host` when it comes near the window, or before printing. */
export function lazy(host: HTMLElement, build: () => void): void {
  observer ??= new IntersectionObserver(
    (entries) => {
      for (const entry of entries) if (entry.isIntersecting) now(entry.target);
    },
    { rootMargin: "600px 0px" },
  );
  waiting.set(host, build);
  observer.observe(host);
}

function now(host: Element): void {
  const build = waiting.get(host);
  waiting.delete(host);
  observer?.unobserve(host);
  build?.();
}

/** Everything that is still waiting: paper does not scroll. */
export function buildAll(): void {
  // What is built may hold more that waits.
  while (waiting.size > 0) for (const host of [...waiting.keys()]) now(host);
}

/** Opens what is folded until the printing is over: nobody unfolds paper. What is built has to be built before. */
export function openAll(): void {
  const folded = [...document.querySelectorAll("details")].filter((d) => !d.open);
  folded.forEach((d) => (d.open = true));
  addEventListener("afterprint", () => folded.forEach((d) => (d.open = false)), { once: true });
}

/** Offers a file. */
export function download(name: string, content: Blob): void {
  const url = URL.createObjectURL(content);
  const link = el("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
