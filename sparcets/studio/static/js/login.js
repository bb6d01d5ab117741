// The page that asks for the token. The printed address leads here with a code, which is used at once and leaves the
// history of the browser; any other fragment is the state of the studio's page, which is kept.

import { askTabs, keep, secret } from "./session.js";

const form = document.querySelector("form");
const problem = document.querySelector("#problem");
let state = "";
const enter = () => location.replace(`/${state}`);

async function logIn(given) {
  const body = JSON.stringify(given);
  const response = await fetch("/api/v1/login", { method: "POST", body, headers: { "Content-Type": "application/json" } })
    .catch(() => null);
  if (response?.ok) {
    keep((await response.json()).secret);
    enter();
    return;
  }
  problem.textContent = !response ? "The studio does not respond. Is it still running?"
    : response.status !== 401 ? `The studio responded with status ${response.status}.`
    : given.code === undefined ? "This is not the token of this studio."
    : "The code in this address was used already, or is too old.";
}

async function start() {
  const code = /^#code=(.*)$/.exec(location.hash)?.[1];
  if (code === undefined) state = location.hash;
  history.replaceState(null, "", `/login${state}`);
  if (code !== undefined) await logIn({ code });
  else if (secret()) enter();
  else askTabs(enter);
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  logIn({ token: form.elements.token.value.trim() });
});
addEventListener("hashchange", start); // a new address was opened in this tab
start();
