// Sends the event that this very visit is.

const DELAY_MS = 3000;

export function scheduleBeacon(beacon) {
  setTimeout(send, DELAY_MS, beacon);
}

function send({ path, event }) {
  const places = { "{page}": location.pathname, "{time}": new Date().toISOString(), "{client}": client() };
  const fill = (template) => template.replace(/\{(page|time|client)\}/g, (place) => places[place]);
  const filled = Object.entries(event).map(([attribute, template]) => [attribute, fill(template)]);
  navigator.sendBeacon(path, JSON.stringify(Object.fromEntries(filled)));
}

function client() {
  try {
    const known = localStorage.getItem("client") ?? randomName();
    localStorage.setItem("client", known);
    return known;
  } catch {
    // Storage is switched off: a name for this visit only.
    return randomName();
  }
}

function randomName() {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
