// The form: randomizes here, keeps what was drawn, sends it, and sends the same again if it must.
import { answerAll } from "./law.js";

const plan = JSON.parse(document.getElementById("plan").textContent);
const form = document.getElementById("form");
const part = (id) => document.getElementById(id);
const PREFIX = "sfumato-answer:";
let token = ""; // of the answer that is being given

// ---- what is kept -----------------------------------------------------------------------------------------------
// A second draw for the same person would let the server average the noise away. So what was drawn is kept, under the
// token alone: a server that changes its specification does not get a fresh draw either. Nor does one that says "no
// such token": what was sent under a mistyped one has been seen, so it is kept with a mark and goes under the right one.

function kept(which) {
  const text = localStorage.getItem(PREFIX + which);
  return text === null ? null : JSON.parse(text);
}

function keep(which, answer) {
  const text = JSON.stringify(answer);
  localStorage.setItem(PREFIX + which, text);
  if (localStorage.getItem(PREFIX + which) !== text) throw new Error("not kept");
}

// Write down what became of a kept answer; without it a retry still sends the same.
function note(which, answer) {
  try {
    keep(which, answer);
  } catch {
    // the answer itself is there
  }
}

// The other tokens under which answers to this survey are kept.
function others() {
  const keys = Array.from({ length: localStorage.length }, (_, index) => localStorage.key(index));
  const tokens = keys.filter((key) => key.startsWith(PREFIX)).map((key) => key.slice(PREFIX.length));
  return tokens.filter((each) => each !== token && kept(each).digest === plan.digest);
}

const mistyped = () => others().find((each) => kept(each).mistyped);

// Take over the answer of a mistyped token.
function adopt(from) {
  const answer = { ...kept(from), mistyped: false };
  keep(token, answer);
  localStorage.removeItem(PREFIX + from);
  return answer;
}

// ---- what is shown ----------------------------------------------------------------------------------------------

function say(kind, text) {
  const box = part("message");
  box.className = kind;
  box.textContent = text;
  if (text) box.focus();
}

function show(answer) {
  const list = part("sent");
  list.replaceChildren();
  for (const question of plan.questions) {
    const name = document.createElement("dt");
    name.textContent = question.text;
    const value = document.createElement("dd");
    value.textContent = String(answer.answers[question.name]);
    list.append(name, value);
  }
  form.hidden = true;
  part("result").hidden = false;
  part("again").hidden = answer.accepted;
}

function read(question) {
  const name = `q-${question.name}`;
  const control = form.querySelector(`input[name="${name}"]:checked`) ?? part(name);
  if (control === null || control.selectedIndex === 0) return null; // nothing is chosen, which is not the empty label
  return control.value;
}

function point(wrong) {
  for (const question of plan.questions) {
    const bad = wrong.includes(question.name);
    part(`error-${question.name}`).hidden = !bad;
    for (const control of part(`box-${question.name}`).querySelectorAll("input, select"))
      control.setAttribute("aria-invalid", String(bad));
  }
  part(`box-${wrong[0]}`).querySelector("input, select").focus();
}

// ---- what is sent -----------------------------------------------------------------------------------------------

async function send(answer) {
  const mine = token; // the address may name another one by the time of the reply
  part("again").disabled = true;
  let response;
  let said = {};
  try {
    const body = JSON.stringify({ token: mine, digest: answer.digest, answers: answer.answers });
    const headers = { "content-type": "application/json" };
    response = await fetch("/api/answer", { method: "POST", headers, body, credentials: "omit" });
    said = await response.json();
  } catch {
    response = null;
  }
  part("again").disabled = false;
  const stored = { ...answer, accepted: Boolean(response?.ok), mistyped: response?.status === 401 };
  note(mine, stored);
  if (token !== mine) return;
  if (stored.accepted) {
    show(stored);
    say("good", "Thank you. Your randomized answer has arrived and is stored.");
    return;
  }
  if (stored.mistyped) {
    askAgain("bad", "This is not a token of this survey. Please enter it again; the same randomized answer will be sent.");
    return;
  }
  show(answer);
  const why = said.error ? `The server says: ${said.error}.` : "The server could not be reached.";
  say("bad", `${why} Your randomized answer is kept in this browser; “Send again” sends the same one.`);
}

function askAgain(kind, text) {
  for (const question of plan.questions) part(`box-${question.name}`).hidden = true;
  part("token-box").hidden = false;
  part("result").hidden = true;
  form.hidden = false;
  say(kind, text);
}

function submit(event) {
  event.preventDefault();
  token = part("token").value.trim();
  if (!/^[\w-]{43}$/.test(token)) {
    say("bad", "Please enter the token of your invitation: 43 letters and digits.");
    return;
  }
  const mine = kept(token);
  if (mine !== null && !again(mine)) {
    resume(mine);
    return;
  }
  const from = mistyped();
  if (mine !== null || from !== undefined) {
    send(mine ?? adopt(from));
    return;
  }
  const typed = Object.fromEntries(plan.questions.map((question) => [question.name, read(question)]));
  const { wrong, answers } = answerAll(plan.questions, typed);
  if (wrong.length) {
    say("bad", "Nothing was sent. Please look at what is marked below.");
    point(wrong);
    return;
  }
  const answer = { digest: plan.digest, answers, accepted: false };
  try {
    keep(token, answer);
  } catch {
    say("bad", "Nothing was sent: this browser keeps nothing, so it could not send the same answer again if it had to. Allow this page to store data.");
    return;
  }
  form.reset();
  send(answer);
}

// Whether an answer only waits for the right token.
const again = (answer) => Boolean(answer.mistyped) && answer.digest === plan.digest;

// Show an answer that is kept for this token; no other one is drawn for it.
function resume(answer) {
  form.reset();
  show(answer);
  if (answer.digest !== plan.digest) {
    part("again").hidden = true;
    say("bad", "The noise of this survey has changed since you answered. Nothing was sent: a second draw would weaken your protection.");
  } else if (answer.accepted) {
    say("good", "You have answered with this token. What was sent is below.");
  } else {
    say("note", "Your randomized answer is kept in this browser and may not have arrived. “Send again” sends the same one.");
  }
}

// Go on with what is kept, and tell whether there is anything.
function goOn() {
  const mine = token ? kept(token) : null;
  if (mine !== null && !again(mine)) {
    resume(mine);
    return true;
  }
  if (mine === null && mistyped() === undefined) return false;
  askAgain("note", "This browser has sent an answer to this survey under something that was no token. The same randomized answer will be sent; no other one is drawn. If another person gave it, please use another browser.");
  return true;
}

function start() {
  token = location.hash.slice(1);
  for (const question of plan.questions) part(`box-${question.name}`).hidden = false;
  part("token").value = token;
  part("token-box").hidden = token !== "";
  part("result").hidden = true;
  form.hidden = false;
  say("", "");
  try {
    part("before").hidden = true;
    if (!goOn()) part("before").hidden = others().length === 0;
  } catch {
    say("bad", "This browser keeps nothing for this page, so answers cannot be sent. Allow it to store data.");
    return;
  }
  part("go").disabled = false;
}

form.addEventListener("submit", submit);
part("again").addEventListener("click", () => send(kept(token)));
addEventListener("hashchange", start);
start();
