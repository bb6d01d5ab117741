// Talking to the API: one error shape in, one kind of error out; asks for the token when the studio wants one.

import { $ } from "./dom.js";

const BASE = "/api/v1";

export class ApiError extends Error {
  constructor(status, body) {
    super(body?.error?.message ?? `The studio answered with status ${status}.`);
    this.status = status;
    this.code = body?.error?.code ?? "unknown";
  }
}

// The token comes in the address's fragment, which browsers never send, and leaves it at once.
export function takeToken() {
  const found = /(?:^#|&)token=([^&]+)/.exec(location.hash);
  if (!found) return;
  sessionStorage.setItem("token", decodeURIComponent(found[1]));
  const rest = location.hash.replace(found[0], "").replace(/^&/, "");
  history.replaceState(null, "", location.pathname + (rest ? `#${rest.replace(/^#/, "")}` : ""));
}

async function request(method, path, body, headers = {}) {
  const token = sessionStorage.getItem("token");
  if (token) headers.Authorization = `Bearer ${token}`;
  let response;
  try {
    response = await fetch(BASE + path, { method, body, headers });
  } catch {
    throw new ApiError(0, { error: { code: "gone", message: "The studio does not answer. Is it still running?" } });
  }
  if (response.status === 401) {
    await askForToken();
    return request(method, path, body, headers);
  }
  if (!response.ok) throw new ApiError(response.status, await response.json().catch(() => null));
  return response;
}

let asking = null;

function askForToken() {
  asking ??= new Promise((resolve) => {
    const dialog = $("#login");
    dialog.addEventListener("cancel", (event) => event.preventDefault());
    dialog.addEventListener("close", () => {
      sessionStorage.setItem("token", $("input", dialog).value.trim());
      $("input", dialog).value = "";
      asking = null;
      resolve();
    }, { once: true });
    dialog.showModal();
  });
  return asking;
}

const JSON_TYPE = { "Content-Type": "application/json" };

export const get = async (path) => (await request("GET", path)).json();
export const post = async (path, body) => (await request("POST", path, JSON.stringify(body), { ...JSON_TYPE })).json();
export const send = (path, body) => request("POST", path, JSON.stringify(body), { ...JSON_TYPE }); // no answer is expected
export const remove = (path) => request("DELETE", path);
export const file = async (path, body) => (await request("POST", path, JSON.stringify(body), { ...JSON_TYPE })).blob();
export const upload = async (picked) =>
  (await request("POST", `/datasets/upload?filename=${encodeURIComponent(picked.name)}`, picked,
    { "Content-Type": "application/octet-stream" })).json();
