// Requests to the API. Error responses become ApiError; a 401 response opens the dialog for the token.

import { $ } from "./dom.js";

const BASE = "/api/v1";

export class ApiError extends Error {
  constructor(status, body) {
    super(body?.error?.message ?? `The studio responded with status ${status}.`);
    this.status = status;
    this.code = body?.error?.code ?? "unknown";
  }
}

// The token comes in the fragment of the URL, which browsers do not send, and is removed from it at once.
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
    throw new ApiError(0, { error: { code: "gone", message: "The studio does not respond. Is it still running?" } });
  }
  if (response.status === 401) {
    await requestToken();
    return request(method, path, body, headers);
  }
  if (!response.ok) throw new ApiError(response.status, await response.json().catch(() => null));
  return response;
}

let pendingToken = null;

function requestToken() {
  pendingToken ??= new Promise((resolve) => {
    const dialog = $("#login");
    dialog.addEventListener("cancel", (event) => event.preventDefault());
    dialog.addEventListener("close", () => {
      sessionStorage.setItem("token", $("input", dialog).value.trim());
      $("input", dialog).value = "";
      pendingToken = null;
      resolve();
    }, { once: true });
    dialog.showModal();
  });
  return pendingToken;
}

const JSON_TYPE = { "Content-Type": "application/json" };

export const get = async (path) => (await request("GET", path)).json();
export const post = async (path, body) => (await request("POST", path, JSON.stringify(body), { ...JSON_TYPE })).json();
export const remove = (path) => request("DELETE", path);
export const file = async (path, body) => (await request("POST", path, JSON.stringify(body), { ...JSON_TYPE })).blob();
export const upload = async (picked) =>
  (await request("POST", `/datasets/upload?filename=${encodeURIComponent(picked.name)}`, picked,
    { "Content-Type": "application/octet-stream" })).json();
