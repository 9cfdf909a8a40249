// From a typed answer to what is sent in its place. The plan comes from the specification as whole numbers.
import { gaussian, laplace, toss, uniform } from "./chance.js";

const LAWS = {
  "keep-or-replace": (law, x) => {
    if (toss(BigInt(law.numerator), BigInt(law.denominator))) return x;
    const other = Number(uniform(BigInt(law.size - 1)));
    return other + (other >= x ? 1 : 0);
  },
  "shift-modulo": (law, x) => (((x + shift(law.reach)) % law.size) + law.size) % law.size,
  mixture: (law, x) =>
    toss(BigInt(law.numerator), BigInt(law.denominator)) ? randomize(law.of, x) : Number(uniform(BigInt(law.size))),
  response: (law, x) => {
    let drawn = uniform(BigInt(law.total));
    let y = 0;
    for (; drawn >= BigInt(law.rows[x][y]); y += 1) drawn -= BigInt(law.rows[x][y]);
    return y;
  },
  uniform: (law, x) => x + shift(law.reach),
  laplace: (law, x) => x + Number(laplace(BigInt(law.numerator), BigInt(law.denominator))),
  gaussian: (law, x) => x + Number(gaussian(BigInt(law.numerator), BigInt(law.denominator), BigInt(law.above))),
  intervals: (law, x) => law.starts.findLastIndex((start) => start <= x),
  classes: (law, x) => law.cells[x],
};

// A whole number from -reach to reach, each equally likely.
function shift(reach) {
  return Number(uniform(2n * BigInt(reach) + 1n)) - reach;
}

// Draw the output for the place x of a domain.
export function randomize(law, x) {
  if (!Number.isSafeInteger(x) || x < 0 || x >= law.size) throw new RangeError("not a place of the domain");
  return LAWS[law.kind](law, x);
}

// Give the place of what was typed or chosen, or null where it is none.
export function encode(domain, typed) {
  if (typed === null) return null;
  if (domain.kind === "labels") {
    const place = domain.values.indexOf(typed);
    return place < 0 ? null : place;
  }
  const text = typed.trim().replace(",", ".");
  if (!/^[+-]?(\d+\.?\d*|\.\d+)$/.test(text)) return null;
  const number = Number(text);
  if (number < domain.low || number > domain.high) return null;
  if (domain.kind === "integers") return Number.isInteger(number) ? number - domain.low : null;
  return Math.min(nearest((number - domain.low) / domain.grid), domain.size - 1);
}

// The nearest whole number, and of two equally near ones the even one: as the command line's client rounds.
function nearest(number) {
  const below = Math.floor(number);
  const over = number - below;
  if (over === 0.5) return below % 2 === 0 ? below : below + 1;
  return over < 0.5 ? below : below + 1;
}

// Give the value at a place, also at places that noise has moved beyond the ends.
export function decode(released, place) {
  if (released.kind === "labels") return released.values[place];
  if (released.kind === "integers") return released.low + place;
  const number = released.low + place * released.grid;
  return released.digits === null ? number : Number(number.toFixed(released.digits));
}

// Give what is sent for all questions, or the names of those whose answers do not fit.
export function answerAll(questions, typed) {
  const places = questions.map((question) => encode(question.domain, typed[question.name]));
  const wrong = questions.filter((_, index) => places[index] === null).map((question) => question.name);
  if (wrong.length) return { wrong, answers: null };
  const draw = (question, index) => [question.name, decode(question.released, randomize(question.law, places[index]))];
  return { wrong, answers: Object.fromEntries(questions.map(draw)) };
}
