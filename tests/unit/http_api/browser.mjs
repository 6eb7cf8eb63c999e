// Runs browser/events.js with answers and a clock of the test's: reads a scenario, prints what was sent and refused.
import { readFileSync } from "node:fs";

const { script, steps } = JSON.parse(readFileSync(0, "utf8"));
const timers = new Map();
const listeners = {};
const log = [];
let now = 0, number = 0, answers = [], beacons = true, underway = 0;
const MOST_UNDERWAY = 64 * 1024; // Of bodies that may outlive their page: https://fetch.spec.whatwg.org/

globalThis.setTimeout = (call, ms) => (timers.set(++number, { call, at: now + ms }), number);
globalThis.clearTimeout = (timer) => void timers.delete(timer);
globalThis.addEventListener = (name, call) => (listeners[name] = call);
globalThis.document = { visibilityState: "visible", addEventListener };
function taken(body) {
  const size = new Blob([body]).size;
  if (underway + size > MOST_UNDERWAY) return 0;
  underway += size;
  return size;
}
function sendBeacon(url, body) {
  const queued = beacons && taken(body) > 0;
  log.push({ kind: "beacon", at: now, url, body, taken: queued });
  return queued;
}
Object.defineProperty(globalThis, "navigator", { value: { sendBeacon } });
globalThis.fetch = async (url, { body, keepalive }) => {
  const size = keepalive ? taken(body) : 0;
  if (keepalive && !size) throw new TypeError("more is under way than may outlive the page");
  const { status, errors, ms, text = JSON.stringify({ errors }) } = answers.shift() ?? { status: 202 };
  log.push({ kind: "fetch", at: now, url, body, status });
  if (ms) await new Promise((resolve) => setTimeout(resolve, ms));
  underway -= size;
  if (!status) throw new TypeError("network");
  return { status, json: async () => JSON.parse(text) };
};

const { batching } = await import(script);
function refused(events, status) {
  log.push({ kind: "refused", at: now, events, status });
  throw new Error("of the page's own code");
}
process.on("unhandledRejection", () => {}); // As in a browser, which goes on.
const post = batching("/events", { refused });
const settled = async () => { for (let turn = 0; turn < 50; turn++) await null; };

for (const step of steps) {
  if (step.post) step.post.forEach(post);
  answers.push(...(step.answers ?? []));
  beacons = step.beacons ?? beacons;
  if (step.hide) document.visibilityState = "hidden";
  if (step.hide) listeners[step.hide]();
  if (step.hide) underway = 0;
  if (step.show) document.visibilityState = "visible";
  if (step.show) listeners.visibilitychange();
  await settled();
  for (const end = now + 1000 * (step.seconds ?? 0); ; await settled()) {
    const [id, timer] = [...timers].sort(([, a], [, b]) => a.at - b.at)[0] ?? [];
    if (!timer || timer.at > end) { now = end; break; }
    timers.delete(id);
    now = Math.max(now, timer.at);
    timer.call();
  }
}
process.stdout.write(JSON.stringify(log), () => process.exit(0));
