// Runs browser/events.js with answers and a clock of the test's: reads a scenario, prints what was sent and refused.
import { readFileSync } from "node:fs";

const { script, steps } = JSON.parse(readFileSync(0, "utf8"));
const timers = new Map();
const listeners = {};
const log = [];
let now = 0, number = 0, answers = [], beacons = true;

globalThis.setTimeout = (call, ms) => (timers.set(++number, { call, at: now + ms }), number);
globalThis.clearTimeout = (timer) => void timers.delete(timer);
globalThis.addEventListener = (name, call) => (listeners[name] = call);
globalThis.document = { visibilityState: "visible", addEventListener };
Object.defineProperty(globalThis, "navigator", {
  value: { sendBeacon: (url, body) => (log.push({ kind: "beacon", at: now, url, body, taken: beacons }), beacons) },
});
globalThis.fetch = async (url, { body }) => {
  const { status, errors } = answers.shift() ?? { status: 202 };
  log.push({ kind: "fetch", at: now, url, body, status });
  if (!status) throw new TypeError("network");
  return { status, json: async () => ({ errors }) };
};

const { batching } = await import(script);
const refused = (events, status) => log.push({ kind: "refused", at: now, events, status });
const post = batching("/events", { refused });
const settled = async () => { for (let turn = 0; turn < 50; turn++) await null; };

for (const step of steps) {
  if (step.post) step.post.forEach(post);
  answers.push(...(step.answers ?? []));
  beacons = step.beacons ?? beacons;
  if (step.hide) document.visibilityState = "hidden";
  if (step.hide) listeners[step.hide]();
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
