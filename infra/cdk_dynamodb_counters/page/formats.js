// Formats of numbers and times: English, like the page, in the reader's time zone.

const CLOCK = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" };

export const whole = new Intl.NumberFormat("en");
export const short = new Intl.NumberFormat("en", { notation: "compact" });
export const hour = new Intl.DateTimeFormat("en", CLOCK);
export const second = new Intl.DateTimeFormat("en", { ...CLOCK, second: "2-digit" });
export const weekday = new Intl.DateTimeFormat("en", { weekday: "short" });
export const moment = new Intl.DateTimeFormat("en", {
  ...CLOCK, month: "short", day: "numeric", timeZoneName: "short",
});
