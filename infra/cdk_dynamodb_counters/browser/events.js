// Posts events in batches. Each gets an id and a time before it is sent, so what is sent twice counts once.

const MOST = 500; // Events of a request.
const MOST_BYTES = 30_000; // What a page that closes has under way is 64 KiB: https://fetch.spec.whatwg.org/
const [FIRST_MS, LONGEST_MS] = [1000, 60_000];

export function batching(url, { wait = 5000, refused = console.error } = {}) {
  let queue = []; // Events, until they are answered.
  let timer, busy = 0, pause = FIRST_MS; // So many of its first events are under way.
  const beacons = new Set(); // Events that a beacon has sent, perhaps in vain.

  const body = (batch) => `[${batch.map(({ text }) => text)}]`; // Text, which needs no preflight.
  const schedule = (ms) => (timer ??= setTimeout(flush, ms));

  function next(events) {
    let bytes = 0;
    const end = events.findIndex(({ size }, index) => (bytes += size + 1) > MOST_BYTES || index === MOST);
    return end < 0 ? events : events.slice(0, Math.max(end, 1));
  }

  const isFull = () => next(queue).length < queue.length;

  async function flush() {
    timer = clearTimeout(timer);
    if (busy || !queue.length) return;
    const batch = next(queue), signal = AbortSignal.timeout(LONGEST_MS);
    busy = batch.length;
    // Browsers refuse one that is longer, if it is to outlive its page.
    const keepalive = batch[0].size < MOST_BYTES;
    const request = { method: "POST", body: body(batch), keepalive, signal };
    const answer = await fetch(url, request).catch(() => ({ status: 503 }));
    const problem = answer.status === 400 ? await answer.json().catch(() => null) : null;
    const errors = [problem?.errors ?? []].flat();
    busy = 0;
    timer = clearTimeout(timer);
    const later = answer.status >= 500 || answer.status === 429;
    pause = later ? Math.min(2 * pause, LONGEST_MS) : FIRST_MS;
    if (later) beacons.clear();
    if (later) return schedule(pause * (0.5 + Math.random() / 2));
    // An event that is refused takes all others of its request along: these are sent again.
    const invalid = batch.filter((_, index) => errors.some((error) => error?.index === index));
    const done = new Set(invalid.length ? invalid : batch);
    queue = queue.filter((event) => !done.has(event));
    if (queue.length) schedule(isFull() ? 0 : wait);
    if (answer.status !== 202) refused([...done].map(({ text }) => JSON.parse(text)), answer.status, errors);
  }

  function leave() {
    // What is under way may outlive the page, so it comes last.
    for (let rest of [queue.slice(busy), queue.slice(0, busy)]) {
      rest = rest.filter((event) => !beacons.has(event));
      for (let batch; (batch = next(rest)).length; rest = rest.slice(batch.length))
        // Nobody says what becomes of it, so a page that comes back sends it again.
        if (navigator.sendBeacon(url, body(batch))) for (const event of batch) beacons.add(event);
    }
  }

  addEventListener("pagehide", leave);
  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState === "hidden") leave();
    else beacons.clear();
  });
  return (event) => {
    const text = JSON.stringify({ id: crypto.randomUUID(), time: new Date().toISOString(), ...event });
    queue.push({ text, size: new Blob([text]).size });
    if (pause === FIRST_MS && isFull()) flush();
    else schedule(wait);
  };
}
