"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const find = (id) => document.getElementById(id);
const FAULTS = new Set(["kill", "zombie", "redeliver", "split", "lost"]);
const KINDS = {
  begin: "Before anything", write: "Views are written", batch: "A batch is delivered", update: "A count is updated",
  refused: "Counted already", "end of batch": "A batch is done", kill: "Killed", zombie: "A zombie",
  redeliver: "The stream goes back", split: "A shard is split", lost: "The answer is lost", end: "The end",
};
// Where on the way of a view each step happens.
const PLACES = [["write"], ["batch", "redeliver", "split"], ["kill", "zombie", "end of batch"], ["update", "refused", "lost"]];
const REFUSED = "Refused: ";
// Milliseconds that a step is shown, and one that takes reading.
const SPAN = 1300;
const HELD = 4500;

// `story` and `branch` say which recording is shown, `states` has its steps whole.
let story = 0;
let branch = null;
let states = [];
let step = 0;
let timer = null;

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function unrolled() {
  const { frames, branches } = data.stories[story];
  const steps = branch ? [...frames.slice(0, branch.step + 1), ...branches[`${branch.step} ${branch.fault}`]] : frames;
  let state = {};
  return steps.map((frame) => {
    state = { ...state, ...frame };
    const running = state.i.map((one) => one.with(4, data.statuses[one[4]]));
    const told = state.x.map((one) => data.texts[one]);
    const reason = told.find((one) => one.startsWith(REFUSED)) ?? "";
    const text = told.filter((one) => one !== reason).join(" ");
    return { ...state, k: data.kinds[state.k], i: running, reason: reason.slice(0, -1), text };
  });
}

function choose(which, where = null, at = 0) {
  pause();
  story = which;
  branch = where;
  states = unrolled();
  find("scrubber").max = states.length - 1;
  show(at);
}

// The next step after which this fault was recorded.
function injectable(fault) {
  const { branches, frames } = data.stories[story];
  if (branch) return -1;
  for (let at = step; at < frames.length; at += 1) if (`${at} ${fault}` in branches) return at;
  return -1;
}

function inject(fault) {
  const at = injectable(fault);
  if (at >= 0) choose(story, { step: at, fault }, at + 1);
}

function show(at) {
  step = Math.max(0, Math.min(at, states.length - 1));
  const state = states[step];
  const last = states.length - 1;
  find("scrubber").value = step;
  find("scrubber").setAttribute("aria-valuetext", `step ${step} of ${last}: ${KINDS[state.k]}`);
  find("position").textContent = `Step ${step} of ${last}`;
  find("back").disabled = step === 0;
  find("forward").disabled = step === last;
  find("kind").textContent = state.reason || KINDS[state.k];
  find("text").textContent = state.text;
  const looks = state.reason ? "refused" : FAULTS.has(state.k) ? "fault" : state.k === "refused" || state.k === "end" ? "held" : "";
  find("happened").className = looks;
  showPath(state);
  showStories();
  showFaults();
  showShards(state);
  showInvocations(state);
  showItems(state);
}

function showPath(state) {
  const sum = (numbers) => numbers.reduce((all, one) => all + one, 0);
  const waiting = state.s.flatMap((_, shard) => standings(state, shard)).filter((one) => one === "waiting").length;
  const told = [`${sum(state.t)} of ${data.events} written`, `${waiting} waiting`, `${running(state).length} running`, `${sum(state.c)} counted`];
  for (const [place, box] of [...find("path").children].entries()) {
    box.lastElementChild.textContent = told[place];
    box.className = PLACES[place].includes(state.k) ? find("happened").className || "here" : "";
  }
}

function showStories() {
  find("stories").value = story;
  const { about, seed } = data.stories[story];
  find("about").textContent = `${about} Seed ${seed}.`;
}

function showFaults() {
  for (const button of document.querySelectorAll("[data-fault]")) {
    const at = injectable(button.dataset.fault);
    button.disabled = at < 0;
    button.title = at < 0 ? "" : at === step ? "Now" : `After step ${at}`;
    button.hidden = Boolean(branch);
  }
  const offered = [...document.querySelectorAll("[data-fault]")].map((button) => injectable(button.dataset.fault));
  const first = Math.min(...offered.filter((at) => at >= 0));
  find("inject-label").textContent = `Inject a fault${first > step && first < Infinity ? ` after step ${first}` : ""}`;
  find("original").hidden = !branch;
  find("injected").hidden = !branch;
  if (branch) {
    find("injected").textContent =
      `Another recording: the same seed, with a fault injected after step ${branch.step} (${KINDS[branch.fault].toLowerCase()}).`;
  }
}

function running(state) {
  return state.i.filter((one) => one[4] !== "done" && one[4] !== "dead");
}

function inBatch(state, shard, at) {
  return running(state).some(([, of, first, last]) => of === shard && first <= at && at <= last);
}

function standings(state, shard) {
  return [...state.r[shard]].map((_, place) =>
    place < state.s[shard][3] ? "acknowledged" : inBatch(state, shard, place + 1) ? "in a batch" : "waiting");
}

function showShards(state) {
  find("shards").replaceChildren(...state.s.map(([name, parent, open, acknowledged], index) => {
    const told = standings(state, index);
    const records = [...state.r[index]].map((page, place) => {
      const at = place + 1;
      const looks = `record page-${page}${at <= acknowledged ? " seen" : ""}${inBatch(state, index, at) ? " flying" : ""}`;
      return element("span", { class: looks, role: "img", "aria-label": `${name}${at} ${data.pages[page]}, ${told[place]}` }, `${at}`);
    });
    const about = `${parent >= 0 ? `child of ${state.s[parent][0]}` : ""}${parent >= 0 && !open ? ", " : ""}${open ? "" : "closed"}`;
    const title = element("div", {}, element("b", {}, `Shard ${name}`), element("small", {}, about));
    return element("div", { class: "shard" }, title, element("div", { class: "records" }, ...records));
  }));
}

function showInvocations(state) {
  const rows = state.i.map(([number, shard, first, last, status, done]) => {
    const name = state.s[shard][0];
    const span = first === last ? `${name}${first}` : `${name}${first}–${name}${last}`;
    const told = { running: "running", lost: "running, heard no answer", zombie: "zombie", dead: "killed", done: "done" }[status];
    const wrote = done.length ? `wrote ${done.map((page) => data.pages[page]).join(", ")}` : "wrote nothing yet";
    return element("li", { class: status }, element("b", {}, `Invocation ${number}`), ` · ${span}`,
      element("span", {}, `${told} · ${wrote}`));
  });
  find("invocations").replaceChildren(...(rows.length ? rows : [element("li", { class: "none" }, "None is running.")]));
}

function showItems(state) {
  const ended = step === states.length - 1;
  find("items").replaceChildren(...data.pages.map((page, index) => {
    const [count, plain, written] = [state.c[index], state.p[index], state.t[index]];
    const marks = state.w[index].map(([shard, place]) => `${state.s[shard][0]}${place}`).join(" ");
    const pending = written - count;
    const off = state.d[index];
    const refused = state.reason && state.f === index;
    const exact = refused ? "refused" : pending ? `${pending} to come` : ended ? "exact" : "";
    const drift = off ? `${off} too many` : pending ? "" : ended ? "exact" : "";
    return element("tr", { class: refused ? "focus refused" : state.f === index ? "focus" : "" },
      element("th", { scope: "row" }, element("span", { class: `swatch page-${index}`, "aria-hidden": "true" }), page,
        element("small", {}, marks ? `watermarks ${marks}` : "no watermark yet")),
      element("td", { class: "written" }, element("strong", {}, `${written}`)),
      element("td", { class: `exact${ended && !pending ? " right" : ""}` }, element("strong", {}, `${count}`),
        element("small", { class: ended && !pending ? "exact" : "" }, exact)),
      element("td", { class: `plain${off > 0 ? " wrong" : ""}` }, element("strong", {}, `${plain}`),
        element("small", {}, drift)));
  }));
}

function pause() {
  clearTimeout(timer);
  timer = null;
  find("play").textContent = "Play";
  find("happened").setAttribute("aria-live", "polite");
}

function takesReading({ k, reason }) {
  return reason || FAULTS.has(k) || k === "begin";
}

function next() {
  timer = setTimeout(() => {
    show(step + 1);
    if (step < states.length - 1) next();
    else pause();
  }, (takesReading(states[step]) ? HELD : SPAN) / Number(find("speed").value));
}

function toggle() {
  if (timer !== null) return pause();
  if (step === states.length - 1) show(0);
  find("play").textContent = "Pause";
  // While it plays, a screen reader could not keep up.
  find("happened").setAttribute("aria-live", "off");
  next();
}

function go(by) {
  pause();
  show(step + by);
}

for (const [index, { name }] of data.stories.entries()) {
  find("stories").append(element("option", { value: index }, name));
}
find("stories").addEventListener("input", (event) => choose(Number(event.target.value)));
for (const button of document.querySelectorAll("[data-fault]")) {
  button.addEventListener("click", () => inject(button.dataset.fault));
}
find("original").addEventListener("click", () => choose(story, null, branch.step));
find("play").addEventListener("click", toggle);
find("back").addEventListener("click", () => go(-1));
find("forward").addEventListener("click", () => go(1));
find("scrubber").addEventListener("input", (event) => {
  pause();
  show(Number(event.target.value));
});
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select")) return;
  if (event.key === " " && !event.target.closest("button")) toggle();
  else if (event.key === "ArrowLeft") go(-1);
  else if (event.key === "ArrowRight") go(1);
  else return;
  event.preventDefault();
});
choose(0);
if (!matchMedia("(prefers-reduced-motion: reduce)").matches) toggle();
