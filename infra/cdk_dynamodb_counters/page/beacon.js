// Reports this visit as an event.

const DELAY_MS = 3000;

export function scheduleBeacon(beacon) {
  setTimeout(send, DELAY_MS, beacon);
}

function send({ path, event }) {
  const values = { "{page}": location.pathname, "{time}": new Date().toISOString(), "{client}": clientId() };
  const fill = (template) => template.replace(/\{(page|time|client)\}/g, (placeholder) => values[placeholder]);
  const filled = Object.entries(event).map(([attribute, template]) => [attribute, fill(template)]);
  navigator.sendBeacon(path, JSON.stringify(Object.fromEntries(filled)));
}

function clientId() {
  try {
    const id = localStorage.getItem("client") ?? randomId();
    localStorage.setItem("client", id);
    return id;
  } catch {
    // Storage is disabled: an id for this visit only.
    return randomId();
  }
}

function randomId() {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
