// Requests to the API, with the secret of the session. Error responses become ApiError; after a 401 response the page asks
// to log in again. While the studio does not respond, the page says so and waits for it to come back.

import { $ } from "./dom.js";
import { forget, needed, toLogin } from "./session.js";

const BASE = "/api/v1";
const RETRY = 1500; // milliseconds between two attempts to reach a studio that does not respond
const listeners = [];
let waiting = false;

export class ApiError extends Error {
  constructor(status, body) {
    super(body?.error?.message ?? `The studio responded with status ${status}.`);
    this.status = status;
    this.code = body?.error?.code ?? "unknown";
  }
}

// Calls the listener whenever the studio responds again after it did not.
export const onReturn = (listener) => listeners.push(listener);

async function request(method, path, body, headers = {}, signal = undefined) {
  const secret = await needed();
  let response;
  try {
    response = await fetch(BASE + path, { method, body, headers: { ...headers, ...authorization(secret) }, signal });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    waitForReturn();
    throw new ApiError(0, { error: { code: "gone", message: "The studio does not respond. Is it still running?" } });
  }
  if (response.status === 401) return ended(secret);
  if (!response.ok) throw new ApiError(response.status, await response.json().catch(() => null));
  return response;
}

const authorization = (secret) => ({ Authorization: `Bearer ${secret}` });

function ended(secret) {
  forget(secret);
  return toLogin();
}

async function waitForReturn() {
  if (waiting) return;
  waiting = true;
  const banner = $("#connection");
  banner.textContent = "The studio does not respond. Is it still running? This page goes on as soon as it is back.";
  banner.hidden = false;
  for (;;) {
    await new Promise((resolve) => { setTimeout(resolve, RETRY); });
    const secret = await needed();
    const response = await fetch(`${BASE}/status`, { headers: authorization(secret) }).catch(() => null);
    if (!response) continue;
    if (response.status === 401) await ended(secret); // it was started again, and knows no session
    if (response.ok) break;
  }
  waiting = false;
  banner.textContent = "The studio is back.";
  setTimeout(() => { banner.hidden = !waiting; }, 3000);
  for (const listener of listeners) listener();
}

const JSON_TYPE = { "Content-Type": "application/json" };

export const get = async (path) => (await request("GET", path)).json();
export const post = async (path, body, signal) => (await request("POST", path, JSON.stringify(body), { ...JSON_TYPE }, signal)).json();
export const remove = (path) => request("DELETE", path);
export const file = async (path, body) => (await request("POST", path, JSON.stringify(body), { ...JSON_TYPE })).blob();
export const upload = async (path, picked) =>
  (await request("POST", `${path}?filename=${encodeURIComponent(picked.name)}`, picked,
    { "Content-Type": "application/octet-stream" })).json();

export async function logOut() {
  const secret = await needed();
  await request("POST", "/logout");
  forget(secret);
  toLogin("");
}
